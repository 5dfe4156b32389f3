import { getDatabase } from '../../contract/databases/databases.js'
import { remote } from '../remote/remote.js'
import { DATABASE, databaseNamed } from './find.js'
import { databaseFacts } from './view.js'

/** `homeport db get`. */
export const getCommand = remote<{ credentials: boolean }>({
  name: 'get',
  summary: 'show a database: addresses, credentials, settings and limits',
  args: [DATABASE],
  flags: (command) => command.option('--no-credentials', 'leave out the password and the tokens'),
  examples: ['homeport db get shop', 'homeport db get shop --no-credentials --json'],
  run: async ({ api, io, show }, { credentials }, wanted) => {
    const { database_id: id } = await databaseNamed(api, wanted)
    const query = credentials ? {} : { credentials: 'hide' as const }
    const record = await api.call(getDatabase, { params: { id }, query })
    show(record, () => databaseFacts(io, record))
  },
})
