import { adoptQuarantined, listQuarantine, type QuarantineRecord } from '../../contract/databases/quarantine.js'
import { group, remote } from '../remote/remote.js'
import { momentOfSeconds } from '../terminal/figures.js'
import { type Column, renderTable } from '../terminal/table.js'

const COLUMNS: readonly Column<QuarantineRecord>[] = [
  { title: 'ID', value: (one) => one.id },
  { title: 'KIND', value: (one) => one.kind },
  { title: 'FROM', value: (one) => one.from },
  { title: 'MOVED', value: (one) => momentOfSeconds(one.moved_at) },
  { title: 'DELETED AFTER', value: (one) => momentOfSeconds(one.deleted_at) },
]

const listQuarantineCommand = remote({
  name: 'list',
  summary: 'list files of databases and backups that the store did not know',
  args: [],
  examples: ['homeport db quarantine list'],
  run: async ({ api, io, show }) => {
    const entries = await api.call(listQuarantine, {})
    show(entries, () => renderTable(io, COLUMNS, entries, 'The quarantine is empty.\n'))
  },
})

/** `homeport db quarantine`. */
export const quarantineCommand = group('quarantine', 'files that the store did not know', [listQuarantineCommand])

/** `homeport db adopt`: turns a quarantine entry into a database or a backup. */
export const adoptCommand = remote<{ name?: string; database?: string }>({
  name: 'adopt',
  summary: 'turn files in quarantine into a database or a backup',
  args: [['<id>', 'id of the entry, from `homeport db quarantine list`']],
  flags: (command) =>
    command
      .option('--name <name>', 'name of the database or backup')
      .option('--database <id>', 'for a backup: the database that gets it'),
  examples: ['homeport db adopt 20260102T030405678Z-3f2a9c-1b2c --name shop'],
  run: async ({ api, show }, { name, database }, id) => {
    const body = { ...(name !== undefined && { name }), ...(database !== undefined && { database_id: database }) }
    const adopted = await api.call(adoptQuarantined, { params: { id }, body })
    const what = adopted.backup_id === undefined ? 'database' : `backup ${adopted.backup_id} of`
    show(adopted, () => `adopted: ${what} ${adopted.database_id}\n`)
  },
})
