import type { Static, TSchema } from 'typebox'
import { type DatabaseRecord, getDatabase } from '../../contract/databases/databases.js'
import type { BodyShape, Endpoint } from '../../contract/endpoint.js'
import type { Api } from '../remote/api.js'
import { type CommandMaker, remote, type Session } from '../remote/remote.js'
import { oneOf } from '../remote/values.js'
import { DATABASE, databaseNamed } from './find.js'
import { changedFacts } from './view.js'

/** Shows what a database is like after a change. */
export async function showChanged({ api, io, show }: Session, id: string): Promise<void> {
  const record = await recordOf(api, id)
  show(record, () => changedFacts(io, record))
}

const recordOf = (api: Api, id: string): Promise<DatabaseRecord> =>
  api.call(getDatabase, { params: { id }, query: { credentials: 'hide' } })

type Switch<Params extends TSchema, Query extends TSchema, Body extends BodyShape, Answer extends TSchema> = Endpoint<
  Params,
  Query,
  Body,
  Answer
>

/** A command that switches something of a database on or off: `homeport db eviction shop on`. */
export function switchCommand<
  Params extends TSchema,
  Query extends TSchema,
  Body extends BodyShape,
  Answer extends TSchema,
>(declared: {
  readonly name: string
  readonly summary: string
  readonly on: Switch<Params, Query, Body, Answer>
  readonly off: Switch<Params, Query, Body, Answer>
}): CommandMaker {
  const { name, summary, on, off } = declared
  return remote<object, [string, 'on' | 'off']>({
    name,
    summary,
    args: [DATABASE, ['<on|off>', 'what it is to be', oneOf(['on', 'off'])]],
    examples: [`homeport db ${name} shop on`],
    run: async (session, _, wanted, state) => {
      const { database_id: id } = await databaseNamed(session.api, wanted)
      // Every switch of a database takes its id and nothing else.
      await session.api.call(state === 'on' ? on : off, { params: { id } as Static<Params> })
      await showChanged(session, id)
    },
  })
}
