import { Option } from 'commander'
import { HomeportError } from '../../contract/errors/errors.js'
import {
  type DatabaseStandby,
  endDatabaseStandby,
  listDatabaseStandbys,
  placeDatabaseStandby,
  placeDatabaseStandbys,
  STANDBY_MODES,
  setDatabaseStandby,
} from '../../contract/server/standbys.js'
import { STANDBY_WORDS } from '../../contract/words/states.js'
import type { Io } from '../io.js'
import { remote } from '../remote/remote.js'
import { counted, moment } from '../terminal/figures.js'
import { renderTable, stateColumn } from '../terminal/table.js'

interface StandbyFlags {
  readonly on?: string
  readonly off?: true
  readonly all?: true
  readonly mode?: DatabaseStandby['mode']
}

/** The node that the home of each database chooses. */
const AUTO = 'auto'

/** `homeport nodes standby`: which node keeps a copy of a database. */
export const standbyCommand = remote<StandbyFlags, [string?]>({
  name: 'standby',
  summary: 'keep a copy of a database on a second node',
  args: [['[database]', 'id of the database']],
  flags: (command) =>
    command
      .option('--on <node>', 'name of the node that keeps the copy, or "auto": the home chooses it')
      .option('--off', 'delete the copy')
      .option('--all', 'with "--on auto": every database that has no standby')
      .addOption(
        new Option('--mode <mode>', '"replicated": answers wait until the copy has the writes').choices([
          ...STANDBY_MODES,
        ]),
      ),
  examples: [
    'homeport nodes standby 7c0e… --on auto',
    'homeport nodes standby 7c0e… --on b --mode replicated',
    'homeport nodes standby --all --on auto',
    'homeport nodes standby 7c0e… --off',
  ],
  run: async ({ api, say }, { on, off, all, mode }, id) => {
    if ((on === undefined) === (off === undefined)) throw misused('Give either --on <node> or --off.')
    if (mode !== undefined && (off || all)) throw misused('--mode goes with --on and one database.')
    if (all && (id !== undefined || on !== AUTO)) throw misused('--all goes with "--on auto", and without a database.')
    if (all) {
      const { added } = await api.call(placeDatabaseStandbys)
      return say(`${counted(added, 'more database')} will have a standby; "homeport nodes standbys" shows them.`)
    }
    if (id === undefined) throw misused('Give the id of a database, or --all.')
    if (off) {
      await api.call(endDatabaseStandby, { params: { id } })
      return say(`${id} has no standby.`)
    }
    const body = mode && { mode }
    if (on === AUTO) await api.call(placeDatabaseStandby, { params: { id }, body })
    else await api.call(setDatabaseStandby, { params: { name: on ?? '', id }, body })
    const target = on === AUTO ? 'Another node' : on
    say(`${target} keeps a copy of ${id}; "homeport nodes standbys" shows how complete it is.`)
  },
})

const misused = (problem: string): HomeportError => new HomeportError('cli_misused', { problem })

/** `homeport nodes standbys`: all of them. */
export const standbysCommand = remote({
  name: 'standbys',
  summary: 'list the copies of databases on second nodes',
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
