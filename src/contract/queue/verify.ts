import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { MOST_ITEM_HEADERS } from '../request-limits.js'

/** Help with signatures. */

/** Say what is wrong with the signature of a delivery. */
export const verifySignature = endpoint({
  service: 'queue',
  topic: 'Signing keys',
  auth: 'bearer',
  id: 'verifySignature',
  method: 'POST',
  path: '/v2/verify',
  access: 'read',
  summary: 'Say what is wrong with the signature of a delivery',
  description:
    'Takes the headers, the body and, if you like, the URL of a delivery as your program saw them, checks the signature ' +
    'as a receiver does, and names every claim that does not hold. Use it when a receiver answers "signature invalid".',
  body: {
    kind: 'json',
    texts: 'long',
    schema: Type.Object({
      headers: Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())]), {
        maxProperties: MOST_ITEM_HEADERS,
        description: 'The headers as they arrived; `Upstash-Signature` has to be among them.',
      }),
      body: Type.Optional(Type.String({ description: 'The body as text.' })),
      bodyBase64: Type.Optional(Type.String({ description: 'The body in base64; wins over `body`.' })),
      url: Type.Optional(Type.String({ description: 'The URL that the receiver expects; absent: not compared.' })),
    }),
  },
  success: {
    status: 200,
    description: 'Whether a receiver would accept the delivery, and why not.',
    body: Type.Object({
      valid: Type.Boolean(),
      signedWith: Type.Optional(Type.Enum(['current', 'next'], { description: 'The key that made the signature.' })),
      problems: Type.Array(
        Type.Object({
          part: Type.Enum(['header', 'form', 'alg', 'key', 'iss', 'sub', 'exp', 'nbf', 'body']),
          problem: Type.String({ description: 'What is wrong, and what usually causes it.' }),
          expected: Type.Optional(Type.String()),
          found: Type.Optional(Type.String()),
        }),
      ),
    }),
  },
  errors: ['invalid_request'],
})
