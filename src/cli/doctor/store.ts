import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { unreachable } from '../../base/index.js'
import { type Config, describeStore, postgresVariablesOfProcess } from '../../config/index.js'
import type { CheckDepth, EnvironmentEffect, StoreReport } from '../../store/maintenance.js'
import { describeError } from '../errors.js'
import { counted } from '../terminal/figures.js'
import { type Finding, fail, ok, warn } from './finding.js'

const DAMAGED = 'Follow "A damaged store" in docs/operations.md. Undamaged data still works.'
const UNFINISHED = 'Run the same `homeport store copy` again, which continues it, or set --store to another store.'
const MAX_SHOWN = 5

/** Checks whether the store can be read, and describes the durability of commits. With `deep`, verifies all checksums. */
export async function checkStore(config: Config, depth: CheckDepth): Promise<Finding[]> {
  // Imported here, so that other commands do not load the store.
  const { checkPostgresStore, checkSqliteStore, environmentEffect } = await import('../../store/maintenance.js')
  const { store, dataDir } = config
  if (store.kind === 'sqlite') {
    const report = await checkSqliteStore(dataDir, depth)
    const guarantee = 'sqlite, write-ahead log, synchronous FULL: a 2xx is sent when the commit is on disk'
    if (report.kind !== 'absent' || !(await hasDatabases(dataDir))) return judge(config, report, guarantee)
    const todo =
      'Restore homeport.sqlite. Without it the server does not start here, unless --accept-unknown-data is set.'
    return [fail('store', `homeport.sqlite is missing, and ${dataDir} holds databases`, todo)]
  }
  const place = describeStore(store)
  const report = await checkPostgresStore(store.url, depth)
  const variables = judgeVariables(environmentEffect(store.url, postgresVariablesOfProcess()))
  if (report.kind === 'unusable') {
    const todo = 'Start PostgreSQL, correct the URL, or change what the reason names.'
    return [fail('store', `${place} cannot be used: ${report.reason}`, todo), ...variables]
  }
  const found = await judge(
    config,
    report,
    `${place} responds: a 2xx is sent when PostgreSQL has acknowledged the commit`,
  )
  return [...found, ...variables, ...(await checkServer(store.url, config))]
}

/** Judges the variables of PostgreSQL in the environment. */
function judgeVariables({ completing, changing, ignored }: EnvironmentEffect): Finding[] {
  const findings: Finding[] = []
  if (completing.length > 0)
    findings.push(ok('postgres', `the URL is completed from the environment: ${completing.join(', ')}`))
  if (changing.length > 0) {
    const todo =
      'The server may run with other variables than this shell: write the settings into the URL (docs/postgres.md).'
    findings.push(warn('postgres', `the environment changes the connection: ${changing.join(', ')}`, todo))
  }
  if (ignored.length > 0) {
    const todo = 'Homeport takes these from the URL only. If the URL is right, nothing needs to be done.'
    findings.push(warn('postgres', `without effect in the environment: ${ignored.join(', ')}`, todo))
  }
  return findings
}

/** Checks the settings of the PostgreSQL server. */
async function checkServer(url: string, { node, processes }: Config): Promise<Finding[]> {
  const { checkPostgresServer } = await import('../../store/maintenance.js')
  try {
    const { about, findings } = await checkPostgresServer(
      url,
      node === undefined ? undefined : { first: node, count: processes },
    )
    if (findings.length === 0) return [ok('postgres', about)]
    return findings.map(({ status, found, todo }) => (status === 'fail' ? fail : warn)('postgres', found, todo))
  } catch (error) {
    return [fail('postgres', `its settings cannot be read: ${describeError(error)}`, 'See docs/postgres.md.')]
  }
}

async function judge(config: Config, report: StoreReport, guarantee: string): Promise<Finding[]> {
  switch (report.kind) {
    case 'absent':
      return [ok('store', `${guarantee}; created at the first start`)]
    case 'unusable':
      return [fail('store', `cannot be read: ${report.reason}`, DAMAGED)]
    case 'unfinished copy':
      return [fail('store', 'an unfinished copy of another store', UNFINISHED)]
    case 'read': {
      const { problems, looked, backups } = report
      const found = problems.length === 0 ? ok('store', `${guarantee}; ${looked}`) : damaged(problems)
      return backups.length === 0 ? [found] : [found, await checkBackups(config, backups)]
    }
    default:
      return unreachable(report)
  }
}

const damaged = (problems: readonly string[]): Finding => fail('store', `damaged: ${shown(problems)}`, DAMAGED)

function shown(problems: readonly string[]): string {
  const more = problems.length > MAX_SHOWN ? `; and ${problems.length - MAX_SHOWN} more` : ''
  return problems.slice(0, MAX_SHOWN).join('; ').replaceAll('\n', ' ') + more
}

type Backups = Extract<StoreReport, { kind: 'read' }>['backups']

/** Compares the file of each completed backup with its checksum. */
async function checkBackups({ dataDir }: Config, backups: Backups): Promise<Finding> {
  const wrong: string[] = []
  for (const { databaseId, backupId, sha256, isStored } of backups) {
    const name = join('backups', databaseId, `${backupId}.rdb`)
    const found = await digestOf(join(dataDir, name))
    if (found === undefined && isStored) continue
    if (found === undefined) wrong.push(`${name} cannot be read`)
    else if (found !== sha256) wrong.push(`${name} has changed since it was created`)
  }
  if (wrong.length === 0) return ok('backups', `${backups.length}, all unchanged`)
  return fail('backups', shown(wrong), 'Create new backups of these databases, and check the disk.')
}

async function digestOf(path: string): Promise<string | undefined> {
  const hash = createHash('sha256')
  try {
    await pipeline(createReadStream(path), hash)
    return hash.digest('hex')
  } catch {
    return undefined
  }
}

const hasDatabases = async (dataDir: string): Promise<boolean> =>
  (await readdir(join(dataDir, 'databases')).catch(() => [])).length > 0

/** Checks the quarantine. */
export async function checkQuarantine({ dataDir }: Config): Promise<Finding> {
  const { hasMoved, QuarantineFiles } = await import('../../fleet/index.js')
  const all = await new QuarantineFiles(dataDir).list()
  if (all.length === 0) return ok('quarantine', 'empty')
  const entries = all.filter((entry) => !hasMoved(entry))
  if (entries.length === 0)
    return ok('quarantine', `old files of ${counted(all.length, 'database')} that other nodes serve now`)
  const found = `${entries.length} in quarantine: ${shown(entries.map(({ id, from }) => `${id} (${from})`))}`
  return warn('quarantine', found, 'Bring an entry back with `homeport db adopt <id>`. Old entries are deleted.')
}

/** Checks for problems that the running server reports. */
export async function checkProblems({ publicApiUrl }: Config, serverPid: number | undefined): Promise<Finding[]> {
  if (serverPid === undefined) return []
  const count = await problemsAt(publicApiUrl)
  if (count === undefined) return []
  if (count === 0) return [ok('problems', 'the running server has none')]
  return [
    warn('problems', `the running server has ${count}`, `Home of the console (${publicApiUrl}/) says what to do.`),
  ]
}

async function problemsAt(url: string): Promise<number | undefined> {
  try {
    const answer: unknown = await (await fetch(`${url}/health`, { signal: AbortSignal.timeout(3_000) })).json()
    const count = typeof answer === 'object' && answer !== null && 'problems' in answer ? answer.problems : undefined
    return typeof count === 'number' ? count : undefined
  } catch {
    return undefined
  }
}
