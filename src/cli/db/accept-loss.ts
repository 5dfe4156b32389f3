import { acceptDataLoss } from '../../contract/databases/backups.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { remote } from '../remote/remote.js'
import { DATABASE, databaseNamed } from './find.js'

type DataProblem = NonNullable<DatabaseRecord['data_problem']>

const OUTCOMES: Readonly<Record<DataProblem['kind'], string>> = {
  missing: 'The database starts empty.',
  unreadable: 'The database starts with the data before the damage.',
  cut: 'The database keeps the data that it serves now.',
}

/** `homeport db accept-loss`: continues without missing or damaged data. */
export const acceptLossCommand = remote({
  name: 'accept-loss',
  summary: 'continue without data of a database that is missing or damaged on the disk',
  args: [DATABASE],
  isDestructive: true,
  examples: ['homeport db accept-loss shop'],
  run: async ({ api, show, confirm }, _, wanted) => {
    const { database_id, database_name, data_problem } = await databaseNamed(api, wanted)
    if (!data_problem) return show({ database_id }, () => `${database_name} has no missing or damaged data\n`)
    const { kind, text } = data_problem
    await confirm(`Accept that data of "${database_name}" (${database_id}) is lost (${text})? ${OUTCOMES[kind]}`)
    await api.call(acceptDataLoss, { params: { id: database_id }, body: {} })
    show({ database_id }, () => `accepted: ${database_name} serves without the lost data\n`)
  },
})
