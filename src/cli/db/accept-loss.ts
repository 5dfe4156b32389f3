import { acceptDataLoss } from '../../contract/databases/backups.js'
import type { DatabaseRecord } from '../../contract/databases/databases.js'
import { remote } from '../remote/remote.js'
import { DATABASE, databaseNamed } from './find.js'

type DataProblem = NonNullable<DatabaseRecord['data_problem']>

const OUTCOMES: Readonly<Record<DataProblem['kind'], string>> = {
  missing: 'It begins empty.',
  unreadable: 'It begins with what comes before the damage.',
  cut: 'It keeps what it serves now.',
}

/** `homeport db accept-loss`: goes on without data that is missing or damaged. */
export const acceptLossCommand = remote({
  name: 'accept-loss',
  summary: 'go on without data of a database that is missing or damaged on the disk',
  args: [DATABASE],
  isDestructive: true,
  examples: ['homeport db accept-loss shop'],
  run: async ({ api, show, confirm }, _, wanted) => {
    const { database_id, database_name, data_problem } = await databaseNamed(api, wanted)
    if (!data_problem) return show({ database_id }, () => `nothing is known to be missing of ${database_name}\n`)
    const { kind, text } = data_problem
    await confirm(`Accept that data of "${database_name}" (${database_id}) is lost (${text})? ${OUTCOMES[kind]}`)
    await api.call(acceptDataLoss, { params: { id: database_id }, body: {} })
    show({ database_id }, () => `accepted: ${database_name} serves without what was lost\n`)
  },
})
