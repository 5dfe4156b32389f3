import { deleteDatabase } from '../../contract/databases/databases.js'
import { remote } from '../remote/remote.js'
import { DATABASE, databaseNamed } from './find.js'

/** `homeport db delete`. */
export const deleteCommand = remote({
  name: 'delete',
  summary: 'delete a database with all its data and backups',
  args: [DATABASE],
  isDestructive: true,
  examples: ['homeport db delete shop', 'homeport db delete shop --yes'],
  run: async ({ api, show, confirm }, _, wanted) => {
    const { database_id: id, database_name: name } = await databaseNamed(api, wanted)
    await confirm(`Delete the database "${name}" (${id}) with all its data and backups? This cannot be undone.`, name)
    const answer = await api.call(deleteDatabase, { params: { id }, body: {} })
    show(answer, () => `deleted ${name} (${id})\n`)
  },
})
