import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Command } from 'commander'
import { systemClock } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import type { Manifest } from '../../service-backup/index.js'
import { failedWith } from '../errors.js'
import { DONE } from '../exit-codes.js'
import { configOf } from '../flags.js'
import { addExamples, type CommandMaker } from '../remote/remote.js'
import { bytes, counted } from '../terminal/figures.js'
import { type Column, renderTable } from '../terminal/table.js'
import { addSourceFlags, listedIn, withBackup } from './source.js'

const ENGINE_FLAGS = ['engineBinary', 'engineAllowUnsafeVersion'] as const

/** A summary of a backup in one line. */
export const summaryOf = ({ databases, files }: Manifest): string =>
  `${savedOf(databases)} of ${counted(databases.length, 'database')}, ${bytes(sizeOf(files))}`

const savedOf = (databases: Manifest['databases']): number => databases.filter(({ state }) => state === 'saved').length

/** The summary of a backup for programs, with the names of the API. */
const figuresOf = ({ version, databases, files }: Manifest) => ({
  version,
  bytes: sizeOf(files),
  databases: databases.length,
  databases_done: savedOf(databases),
})

const jsonFlag = (command: Command): Command => command.option('--json', 'print JSON instead', false)

const sizeOf = (files: Manifest['files']): number => files.reduce((sum, file) => sum + file.bytes, 0)

const isJson = (command: Command): boolean => command.opts<{ json: boolean }>().json
const asJson = (value: unknown): string => `${JSON.stringify(value, undefined, 2)}\n`

/** `homeport backup list`: the complete backups of a place. */
export const listCommand: CommandMaker = (io, end) => {
  const command = new Command('list').description('list the complete backups of a place, newest first')
  addSourceFlags(jsonFlag(command), 'where backups are')
  addExamples(command, ['homeport backup list --from /var/backups/homeport'])
  return command.action(async () => {
    const found = await listedIn(command)
    const columns: Column<(typeof found)[number]>[] = [
      { title: 'NAME', value: (one) => one.name },
      { title: 'CONTENT', value: (one) => summaryOf(one.manifest) },
      { title: 'VERSION', value: (one) => one.manifest.version },
    ]
    const json = () => found.map(({ name, path, manifest }) => ({ name, path, ...figuresOf(manifest) }))
    io.out(isJson(command) ? asJson(json()) : renderTable(io, columns, found))
    end(DONE)
  })
}

/** `homeport backup verify`: checks every file, the store, and every database, which it loads in an engine. */
export const verifyCommand: CommandMaker = (io, end) => {
  const command = new Command('verify').description(
    'check every file and the store of a backup, and load every database into an engine',
  )
  addSourceFlags(jsonFlag(command), 'a backup, or the place of several: the newest of them', ENGINE_FLAGS)
  addExamples(command, ['homeport backup verify --from /var/backups/homeport'])
  return command.action(async () => {
    const { verifyBackup } = await import('../../service-backup/index.js')
    await withBackup(command, join(tmpdir(), 'homeport'), async (folder, path) => {
      const { manifest, keys } = await withEngine(command, (load) => verifyBackup(folder, load))
      const text = `${path} is complete: ${summaryOf(manifest)}, ${counted(keys, 'key')}.\n`
      io.out(isJson(command) ? asJson({ path, ...figuresOf(manifest), keys }) : text)
    })
    end(DONE)
  })
}

/** Runs work with a separate fleet in a temporary directory. */
async function withEngine<Result>(
  command: Command,
  work: (load: (file: string) => Promise<number>) => Promise<Result>,
): Promise<Result> {
  const config = configOf(command)
  const { createFleet, probeEngine } = await import('../../fleet/index.js')
  const engine = await probeEngine(config.engineBinary)
  const dataDir = await mkdtemp(join(tmpdir(), 'homeport-verify-'))
  const quiet = { info: () => undefined, warn: () => undefined, error: () => undefined }
  const { engineAllowUnsafeVersion: allowUnsafeVersion } = config
  const fleet = createFleet({ dataDir, engine, clock: systemClock, logger: quiet, allowUnsafeVersion })
  try {
    await fleet.start()
    return await work(async (file) => (await fleet.checkSnapshot(file)).keys)
  } catch (error) {
    if (error instanceof HomeportError) throw error
    throw failedWith(`The engine could not be used: ${String(error)}`, { cause: error })
  } finally {
    await fleet.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
