import { type Static, Type } from 'typebox'
import { TEAM_ROLES } from '../accounts/accounts.js'
import { endpoint, ok } from '../endpoint.js'

/** The header that proves that the console sent a request; required for everything but GET. */
export const CONSOLE_HEADER = 'x-homeport-console'

/** Lifetime of a session after its last use. */
export const SESSION_LASTS_MS = 12 * 60 * 60 * 1000

const text = (description: string) => Type.String({ description })

/** The caller of a console session: the caller of its API key. */
export const ConsoleSessionSchema = Type.Object({
  email: text('E-mail of the signed-in person.'),
  account_id: text('The account or team of the API key.'),
  account_type: Type.Enum(['free', 'paid'], { description: 'Type of the account.' }),
  role: Type.Optional(Type.Enum([...TEAM_ROLES], { description: 'For a key of a team: the role in the team.' })),
  access: Type.Enum(['read', 'write'], { description: '`read`: changes are refused.' }),
  operator: Type.Optional(Type.Literal(true, { description: 'Present for the operator of the server.' })),
})

/** The caller of a console session. */
export type ConsoleSession = Static<typeof ConsoleSessionSchema>

const SignInSchema = Type.Object({
  email: Type.String({
    maxLength: 254,
    description: 'E-mail of the account, or of the member who uses a key of a team.',
  }),
  api_key: Type.String({ maxLength: 512, description: 'The API key.' }),
})

/** The body of a sign-in. */
export type SignInBody = Static<typeof SignInSchema>

/** Signs in to the console. */
export const createConsoleSession = endpoint({
  id: 'createConsoleSession',
  service: 'management',
  topic: 'Console',
  method: 'POST',
  path: '/v2/console/session',
  auth: 'none',
  access: 'write',
  summary: 'Sign in to the console',
  description: `Sets a session cookie that replaces the API key at this listener, also for the operations of the queue. The session expires ${SESSION_LASTS_MS / 3_600_000} hours after its last use, or when the key is deleted. With the cookie, all requests but GET require the header \`${CONSOLE_HEADER}: 1\`, and so does the sign-in itself. Programs should send the API key instead.`,
  body: { kind: 'json', schema: SignInSchema },
  success: { status: 200, description: 'The session.', body: ConsoleSessionSchema },
  errors: ['sign_in_refused', 'sign_in_limit', 'console_header_missing', 'store_full', 'store_unavailable'],
})

/** Shows who is signed in. */
export const getConsoleSession = endpoint({
  id: 'getConsoleSession',
  service: 'management',
  topic: 'Console',
  method: 'GET',
  path: '/v2/console/session',
  auth: 'none',
  access: 'read',
  summary: 'Show who is signed in',
  description:
    'The account, role and access of the session of the cookie, or `null`. The request needs no credentials, so that the console can ask before anybody has signed in.',
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'The caller; `null` when nobody is signed in.',
    body: Type.Union([ConsoleSessionSchema, Type.Null()]),
  },
  errors: ['store_unavailable'],
})

/** Signs out of the console. */
export const endConsoleSession = endpoint({
  id: 'endConsoleSession',
  service: 'management',
  topic: 'Console',
  method: 'DELETE',
  path: '/v2/console/session',
  auth: 'basic',
  access: 'read',
  summary: 'Sign out of the console',
  description: 'Ends the session of the cookie, if there is one, and deletes the cookie.',
  body: { kind: 'none' },
  success: ok,
  errors: ['store_unavailable'],
})
