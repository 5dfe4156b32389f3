import { HomeportError } from '../../contract/errors/errors.js'
import {
  type DatabaseStandby,
  listDatabaseStandbys,
  removeDatabaseStandby,
  setDatabaseStandby,
} from '../../contract/server/standbys.js'
import type { Io } from '../io.js'
import { remote } from '../remote/remote.js'
import { renderTable } from '../terminal/table.js'

interface StandbyFlags {
  readonly on?: string
  readonly off?: true
}

/** `homeport nodes standby`: which node keeps a copy of a database. */
export const standbyCommand = remote<StandbyFlags, [string]>({
  name: 'standby',
  summary: 'keep a copy of a database on a second node',
  args: [['<database>', 'id of the database']],
  flags: (command) =>
    command.option('--on <node>', 'name of the node that keeps the copy').option('--off', 'delete the copy'),
  examples: ['homeport nodes standby 7c0e… --on b', 'homeport nodes standby 7c0e… --off'],
  run: async ({ api, say }, { on, off }, id) => {
    if ((on === undefined) === (off === undefined)) {
      throw new HomeportError('cli_failed', { problem: 'Give either --on <node> or --off.' })
    }
    if (on !== undefined) {
      await api.call(setDatabaseStandby, { params: { name: on, id } })
      return say(`${on} keeps a copy of ${id}; "homeport nodes standbys" shows how complete it is.`)
    }
    const found = (await api.call(listDatabaseStandbys)).find((one) => one.database_id === id)
    if (!found) return say(`${id} has no standby.`)
    await api.call(removeDatabaseStandby, { params: { name: found.standby, id } })
    say(`${found.standby} deletes its copy of ${id}.`)
  },
})

/** `homeport nodes standbys`: all of them. */
export const standbysCommand = remote({
  name: 'standbys',
  summary: 'list the copies of databases on second nodes',
  run: async ({ api, io, show, say }) => {
    const standbys = await api.call(listDatabaseStandbys)
    show(standbys, () => table(io, standbys))
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
      { title: 'STATE', value: (one) => one.state },
      {
        title: 'COMPLETE UNTIL',
        value: ({ complete_until }) => (complete_until === 0 ? '' : new Date(complete_until).toISOString()),
      },
      { title: 'PROBLEM', value: (one) => one.problem },
    ],
    rows,
  )
