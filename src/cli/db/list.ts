import { listDatabases } from '../../contract/databases/databases.js'
import { remote } from '../remote/remote.js'
import { databasesTable } from './view.js'

/** `homeport db list`. */
export const listCommand = remote({
  name: 'list',
  summary: 'list all databases without their credentials, oldest first',
  examples: ['homeport db list', "homeport db list --json | jq -r '.[].database_name'"],
  run: async ({ api, io, show }) => {
    const databases = await api.call(listDatabases, { query: { credentials: 'hide' } })
    show(databases, () => databasesTable(io, databases))
  },
})
