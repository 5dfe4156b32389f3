import { Command } from 'commander'
import { type Config, type StoreChoice, storeChoice } from '../../config/index.js'
import type { CopyReport } from '../../store/maintenance.js'
import { misused } from '../errors.js'
import { DONE, FAILED } from '../exit-codes.js'
import { addFlags, configOf } from '../flags.js'
import type { Io } from '../io.js'
import { addExamples, type CommandMaker } from '../remote/remote.js'
import { withStoppedServer } from './locked.js'
import { copyProgressOf } from './progress.js'
import { isComplete, renderReport, reportAsJson } from './report.js'

interface CopyFlags {
  readonly from: string | undefined
  readonly to: string | undefined
  readonly dryRun: boolean
  readonly json: boolean
}

const MEANING = `copy everything in the store of a stopped server to another database: from SQLite to PostgreSQL, or back.
The source is never changed. An interrupted copy continues when the command is run again`

/** `homeport store copy`: moves the store of a stopped server. */
export const copyCommand: CommandMaker = (io, end) => {
  const command = new Command('copy')
    .description(MEANING)
    .option('--from <store>', 'the source: sqlite (in the data directory), or a postgres:// URL. Default: --store')
    .option('--to <store>', 'the target, likewise. Default: --store')
    .option('--dry-run', 'check both and count the rows; write nothing', false)
    .option('--json', 'print the report as one JSON object', false)
  addExamples(command, [
    'homeport store copy --to postgres://homeport@db.example.com/homeport --dry-run',
    'HOMEPORT_STORE=postgres://… homeport store copy --from sqlite',
    'HOMEPORT_STORE=postgres://… homeport store copy --to sqlite',
  ])
  return addFlags(command, ['dataDir', 'store']).action(async () => {
    const flags = command.opts<CopyFlags>()
    const config = configOf(command)
    const report = await copy(config, endsOf(flags, config), flags, io)
    io.out(flags.json ? reportAsJson(report) : renderReport(io, report))
    end(isComplete(report) ? DONE : FAILED)
  })
}

interface Ends {
  readonly from: StoreChoice
  readonly to: StoreChoice
}

async function copy(config: Config, { from, to }: Ends, { dryRun }: CopyFlags, io: Io): Promise<CopyReport> {
  const directory = from.kind === 'sqlite' || dryRun ? 'must exist' : 'may be new'
  return await withStoppedServer(config, directory, async () => {
    const [{ copyStore }, { installationOf }] = await Promise.all([
      import('../../store/maintenance.js'),
      import('../../accounts/index.js'),
    ])
    const progress = copyProgressOf(io)
    try {
      return await copyStore({
        from: locationOf(from),
        to: locationOf(to),
        dataDir: config.dataDir,
        boundTo: await installationOf(config.dataDir),
        isDryRun: dryRun,
        onProgress: (at) => progress.at(at),
      })
    } finally {
      progress.end()
    }
  })
}

const locationOf = (store: StoreChoice): string => (store.kind === 'sqlite' ? 'sqlite' : store.url)

/** The source and the target of the copy. The one that no flag names is the configured store. */
function endsOf(flags: CopyFlags, config: Config): Ends {
  const from = flags.from === undefined ? config.store : storeIn('--from', flags.from)
  const to = flags.to === undefined ? config.store : storeIn('--to', flags.to)
  if (flags.from === undefined && flags.to === undefined) {
    throw misused('Say where to copy: --to postgres://user@host/database, or --to sqlite.')
  }
  if (from.kind === to.kind) {
    const both = from.kind === 'sqlite' ? 'the SQLite store of the data directory' : 'PostgreSQL databases'
    throw misused(
      `Source and target are both ${both}. Set --from and --to so that one is sqlite and the other a postgres:// URL. PostgreSQL's own pg_dump copies between PostgreSQL servers.`,
    )
  }
  return { from, to }
}

function storeIn(flag: string, text: string): StoreChoice {
  const found = storeChoice.parse(text)
  if (found === undefined) throw misused(`${flag} is not a store. Expected ${storeChoice.expects}.`)
  return found
}
