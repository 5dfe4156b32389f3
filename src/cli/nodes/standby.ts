import { InvalidArgumentError, Option } from 'commander'
import {
  type DatabaseStandby,
  endDatabaseStandby,
  listDatabaseStandbys,
  MAX_STANDBYS,
  placeDatabaseStandby,
  placeDatabaseStandbys,
  removeDatabaseStandby,
  STANDBY_MODES,
  setDatabaseStandby,
} from '../../contract/server/standbys.js'
import { STANDBY_WORDS } from '../../contract/words/states.js'
import { ANY_DATABASE, anyDatabaseId } from '../db/find.js'
import { misused } from '../errors.js'
import type { Io } from '../io.js'
import { remote, type Session } from '../remote/remote.js'
import { counted, moment } from '../terminal/figures.js'
import { renderTable, stateColumn } from '../terminal/table.js'

interface StandbyFlags {
  readonly on?: string
  /** The name of a node; true: all. */
  readonly off?: string | true
  readonly all?: true
  readonly mode?: DatabaseStandby['mode']
  readonly copies?: number
}

/** Instead of the name of a node: the home of each database chooses the nodes. */
const AUTO = 'auto'

/** `homeport nodes standby`: sets which nodes keep copies of a database. */
export const standbyCommand = remote<StandbyFlags, [string?]>({
  name: 'standby',
  summary: 'keep copies of a database on other nodes',
  args: [['[database]', ANY_DATABASE]],
  flags: (command) =>
    command
      .option('--on <node>', 'name of a node that keeps a copy, or "auto": the home chooses all nodes')
      .option('--copies <number>', `how many copies it has then, 1 to ${MAX_STANDBYS}`, copiesOf)
      .option('--off [node]', 'delete the copy of a node, or all copies')
      .option('--all', 'with "--on auto": every database that has no standby')
      .addOption(
        new Option('--mode <mode>', '"replicated": replies wait until the copies have the writes').choices([
          ...STANDBY_MODES,
        ]),
      ),
  examples: [
    'homeport nodes standby orders --on auto',
    'homeport nodes standby orders --on auto --copies 2',
    'homeport nodes standby orders --on b --mode replicated',
    'homeport nodes standby --all --on auto',
    'homeport nodes standby orders --off b',
    'homeport nodes standby orders --off',
  ],
  run: async ({ api, say }, { on, off, all, mode, copies }, database) => {
    if ((on === undefined) === (off === undefined)) throw misused('Give either --on <node> or --off.')
    if ((mode ?? copies) !== undefined && (off || all)) {
      throw misused('--mode and --copies go with --on and one database.')
    }
    if (all && (database !== undefined || on !== AUTO))
      throw misused('--all goes with "--on auto", and without a database.')
    if (all) {
      const { added } = await api.call(placeDatabaseStandbys)
      return say(`${counted(added, 'more database')} will have a standby; "homeport nodes standbys" shows them.`)
    }
    if (off !== undefined) return say(await end(api, off, database))
    if (database === undefined) throw misused('Give a database, or --all.')
    const id = await anyDatabaseId(api, database)
    const body = { ...(mode && { mode }), ...(copies !== undefined && { copies }) }
    if (on === AUTO) await api.call(placeDatabaseStandby, { params: { id }, body })
    else await api.call(setDatabaseStandby, { params: { name: on ?? '', id }, body })
    say(`${answerTo(on, copies)} of ${database}; "homeport nodes standbys" shows how complete each copy is.`)
  },
})

/** Ends one standby of a database, or all of them. Returns the text of the result. */
async function end(api: Session['api'], off: string | true, given: string | undefined): Promise<string> {
  // In "--off <database>", Commander reads the database as the value of the option.
  const [database, name] = given === undefined && off !== true ? [off, undefined] : [given, off]
  if (database === undefined) throw misused('Give a database.')
  const id = await anyDatabaseId(api, database)
  if (typeof name === 'string') {
    await api.call(removeDatabaseStandby, { params: { name, id } })
    return `${name} keeps no copy of ${database}.`
  }
  await api.call(endDatabaseStandby, { params: { id } })
  return `${database} has no standby.`
}

function answerTo(on: string | undefined, copies: number | undefined): string {
  if (on !== AUTO) return `${on} keeps a copy`
  return copies === undefined || copies === 1 ? 'Another node keeps a copy' : `${copies} other nodes keep copies`
}

function copiesOf(text: string): number {
  const copies = Number(text)
  if (Number.isInteger(copies) && copies >= 1 && copies <= MAX_STANDBYS) return copies
  throw new InvalidArgumentError(`Give a number from 1 to ${MAX_STANDBYS}.`)
}

/** `homeport nodes standbys`: lists all standbys. */
export const standbysCommand = remote({
  name: 'standbys',
  summary: 'list the copies of databases on other nodes',
  examples: ['homeport nodes standbys'],
  run: async ({ api, io, show, say }) => {
    const standbys = await api.call(listDatabaseStandbys)
    show(standbys, () => (standbys.length === 0 ? '' : table(io, standbys)))
    if (standbys.length === 0) say('No database has a standby.')
  },
})

const table = (io: Io, rows: readonly DatabaseStandby[]): string =>
  renderTable(
    io,
    [
      { title: 'DATABASE', value: (one) => one.database_id },
      { title: 'NAME', value: (one) => one.database_name },
      { title: 'HOME', value: (one) => one.home },
      { title: 'STANDBY', value: (one) => one.standby },
      { title: 'MODE', value: (one) => one.mode },
      stateColumn((one: DatabaseStandby) => STANDBY_WORDS[one.state]),
      {
        title: 'COMPLETE UNTIL',
        value: ({ complete_until }) => moment(complete_until),
      },
      { title: 'PROBLEM', value: (one) => one.problem },
    ],
    rows,
  )
