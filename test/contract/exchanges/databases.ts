import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BackupRecord } from '../../../src/contract/databases/backups.js'
import { createDatabase, LEAST } from '../../e2e/support/service.js'
import { type Answer, basicOf, call, tempDir, waitFor } from '../../support/index.js'
import type { Exchange, Exchanges, Stage } from './stage.js'

const REDIS = '/v2/redis'

/** An exchange about the database of the stage. */
const about =
  (method: string, path: (id: string) => string, body?: object): Exchange =>
  async (stage) =>
    stage.homeport.api(method, REDIS + path(await stage.database()), body)

/** Calls an operation and then the one that undoes it, which is checked. */
const after =
  (first: Exchange, second: Exchange): Exchange =>
  async (stage) => {
    await first(stage)
    return second(stage)
  }

const switched = (verb: string): Exchange => about('POST', (id) => `/${verb}/${id}`)

/** Creating, reading, changing and deleting databases. */
export const databaseExchanges: Exchanges = {
  startFreeDatabase: ({ homeport }) => homeport.api('POST', '/start-redis'),
  createDatabase: ({ homeport }) => homeport.api('POST', `${REDIS}/database`, LEAST),
  getDatabase: about('GET', (id) => `/database/${id}`),
  listDatabases: ({ homeport }) => homeport.api('GET', `${REDIS}/databases`),
  getAwake: about('GET', (id) => `/awake/${id}`),
  backUpService: ({ homeport }) =>
    homeport.api('POST', '/v2/server/backup', { to: join(tempDir(), 'backups'), keep: 1 }),
  getServiceBackup: ({ homeport }) => homeport.api('GET', '/v2/server/backup'),
  getServerLogs: ({ homeport }) => homeport.api('GET', '/v2/server/logs?level=info&count=5'),
  getDatabaseMetrics: after(switched('enable-prodpack'), async (stage) =>
    stage.homeport.api('GET', `/metrics/databases/${await stage.database()}`),
  ),
  getMetrics: ({ homeport }) => homeport.api('GET', '/metrics'),
  getDatabaseStats: about('GET', (id) => `/stats/${id}?period=1d`),
  renameDatabase: about('POST', (id) => `/rename/${id}`, { name: 'another name' }),
  resetPassword: about('POST', (id) => `/reset-password/${id}`),
  enableEviction: switched('enable-eviction'),
  disableEviction: switched('disable-eviction'),
  enableAutoUpgrade: switched('enable-autoupgrade'),
  disableAutoUpgrade: switched('disable-autoupgrade'),
  suspendDatabase: switched('suspend'),
  resumeDatabase: switched('resume'),
  enableProductionPack: switched('enable-prodpack'),
  disableProductionPack: switched('disable-prodpack'),
  changePlan: about('POST', (id) => `/${id}/change-plan`, { plan_name: 'fixed_1gb' }),
  changePlanByVerb: about('POST', (id) => `/change-plan/${id}`, { plan: 'payg' }),
  updateBudget: about('PATCH', (id) => `/update-budget/${id}`, { budget: 20 }),
  updateRegions: about('POST', (id) => `/update-regions/${id}`, { read_regions: ['eu-west-1'] }),
  updateAllowList: about('POST', (id) => `/update-allowlist/${id}`, { allowed_ips: ['127.0.0.0/8'] }),
}

/** Runs after the exchanges in clear text: from here on the port speaks TLS, and at the end the database is deleted. */
export const lastDatabaseExchanges: Exchanges = {
  enableTls: about('POST', (id) => `/enable-tls/${id}`),
  updateMutualTls: about('POST', (id) => `/${id}/mutual-tls`, { client_ca: null }),
  deleteDatabase: about('DELETE', (id) => `/database/${id}`),
}

/** Puts a copy of a backup into the quarantine; returns the id of the entry. */
async function quarantined(stage: Stage): Promise<string> {
  const [databaseId, backupId] = [await stage.database(), await backup(stage)]
  const { dataDir } = stage.homeport.place
  const entry = join(dataDir, 'quarantine', 'by-hand')
  mkdirSync(entry, { recursive: true, mode: 0o700 })
  const note = { kind: 'backup', databaseId, backupId, from: 'backups', reason: 'a test', movedAt: Date.now() }
  writeFileSync(join(entry, 'note.json'), JSON.stringify(note), { mode: 0o600 })
  copyFileSync(join(dataDir, 'backups', databaseId, `${backupId}.rdb`), join(entry, 'data'))
  return 'by-hand'
}

/** Makes a backup of the database of the stage; returns its id. */
async function backup(stage: Stage): Promise<string> {
  const id = await stage.database()
  await stage.homeport.api('POST', `${REDIS}/create-backup/${id}`, { name: 'for an exchange' })
  const { body } = await stage.homeport.api('GET', `${REDIS}/list-backup/${id}`)
  return (body as { backup_id: string }[])[0]?.backup_id ?? 'none'
}

const aboutBackup =
  (method: string, path: (id: string, backupId: string) => string, body?: (backupId: string) => object): Exchange =>
  async (stage) => {
    const backupId = await backup(stage)
    return stage.homeport.api(method, REDIS + path(await stage.database(), backupId), body?.(backupId))
  }

const daily = (method: string, verb: string): Exchange => about(method, (id) => `/${verb}-dailybackup/${id}`)

/** Downloads a backup and uploads its bytes as an import. */
async function importDownloaded(stage: Stage): Promise<Answer> {
  const id = await stage.database()
  const { apiUrl, credentials } = stage.homeport
  const authorization = basicOf(credentials.email, credentials.apiKey)
  const from = `${apiUrl}${REDIS}/download-backup/${id}/${await backup(stage)}`
  const file = await (await fetch(from, { headers: { authorization } })).blob()
  return call(`${apiUrl}${REDIS}/import-rdb/${id}`, { method: 'POST', headers: { authorization }, body: file })
}

async function importOther(stage: Stage): Promise<Answer> {
  const { port, password } = await createDatabase(stage.service, { database_name: 'source' })
  const url = `redis://default:${password}@127.0.0.1:${port}`
  const path = `${REDIS}/import/${await stage.database()}`
  const answer = await stage.homeport.api('POST', path, { url })
  const state = async () => ((await stage.homeport.api('GET', path)).body as { state: string }).state
  await waitFor(async () => (await state()) === 'completed', { what: 'the import to be completed' })
  return answer
}

/** Makes a backup, waits until it is in object storage, and adopts it from there. */
async function adoptStored(stage: Stage): Promise<Answer> {
  const [database_id, backup_id] = [await stage.database(), await backup(stage)]
  const isStored = async () => {
    const { body } = await stage.homeport.api('GET', `${REDIS}/list-backup/${database_id}`)
    const found = (body as BackupRecord[]).find((one) => one.backup_id === backup_id)
    return found?.storage?.state === 'stored'
  }
  await waitFor(isStored, { what: 'the upload' })
  return stage.homeport.api('POST', `${REDIS}/adopt-stored-backup/${database_id}`, { database_id, backup_id })
}

/** Backups and imports. */
export const backupExchanges: Exchanges = {
  createBackup: about('POST', (id) => `/create-backup/${id}`, { name: 'nightly' }),
  listBackups: about('GET', (id) => `/list-backup/${id}`),
  restoreBackup: aboutBackup(
    'POST',
    (id) => `/restore-backup/${id}`,
    (backup_id) => ({ backup_id }),
  ),
  acceptDataLoss: about('POST', (id) => `/accept-loss/${id}`),
  downloadBackup: aboutBackup('GET', (id, backupId) => `/download-backup/${id}/${backupId}`),
  deleteBackup: aboutBackup('DELETE', (id, backupId) => `/delete-backup/${id}/${backupId}`),
  enableDailyBackup: daily('PATCH', 'enable'),
  enableDailyBackupByPost: daily('POST', 'enable'),
  disableDailyBackup: daily('PATCH', 'disable'),
  disableDailyBackupByPost: daily('POST', 'disable'),
  adoptStoredBackup: adoptStored,
  recoverDatabase: aboutBackup(
    'POST',
    (id) => `/recover/${id}`,
    (backup_id) => ({ backup_id }),
  ),
  listStoredBackups: ({ homeport }) => homeport.api('GET', `${REDIS}/stored-backups`),
  listQuarantine: ({ homeport }) => homeport.api('GET', `${REDIS}/quarantine`),
  adoptQuarantined: async (stage) =>
    stage.homeport.api('POST', `${REDIS}/quarantine/${await quarantined(stage)}/adopt`, { name: 'adopted' }),
  importFile: importDownloaded,
  importFromUrl: importOther,
  getImport: after(
    importDownloaded,
    about('GET', (id) => `/import/${id}`),
  ),
  listImports: about('GET', (id) => `/imports/${id}`),
}
