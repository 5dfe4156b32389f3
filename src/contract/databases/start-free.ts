import { Type } from 'typebox'
import { endpoint } from '../endpoint.js'

/** Text of the answer, which the tool shows to the agent that called it. */
export const NO_FREE_DATABASES = `No database was started. This is a Homeport server: it gives no databases without an account, and none that expire by themselves.

- To get a database, call the tool \`redis_database_create_new\`, or run \`homeport db create\`. It belongs to the account of the API key and stays until it is deleted.
- Delete it with the tool \`redis_database_delete\` when it is not needed any more.
`

/** Tells the caller of the tool `redis_database_start_free` what to do instead. */
export const startFreeDatabase = endpoint({
  id: 'startFreeDatabase',
  service: 'management',
  topic: 'Databases',
  method: 'POST',
  path: '/start-redis',
  auth: 'none',
  access: 'read',
  summary: 'Ask for a database without an account',
  description:
    'The tool `redis_database_start_free` calls this address without an API key. Homeport creates no databases without an account: nothing is created, and the answer names the tool that creates databases.',
  body: { kind: 'raw', maxBytes: 1_024 },
  success: {
    status: 200,
    description: 'What to do instead, Markdown.',
    body: Type.String(),
    contentType: 'text/markdown',
  },
  errors: [],
})
