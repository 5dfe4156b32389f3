import Type from 'typebox'
import { endpoint } from '../endpoint.js'
import { MAX_ITEM_HEADERS } from '../request-limits.js'

/** Checks the signature of a delivery. */
export const verifySignature = endpoint({
  service: 'queue',
  topic: 'Signing keys',
  auth: 'bearer',
  id: 'verifySignature',
  method: 'POST',
  path: '/v2/verify',
  access: 'read',
  scopes: ['read'],
  summary: 'Check the signature of a delivery',
  description:
    'Send the headers, the body and optionally the URL of a delivery as your program received them. The server checks ' +
    'the signature as a receiver does and lists every claim that fails. Use it when a receiver reports an invalid signature.',
  body: {
    kind: 'json',
    texts: 'long',
    schema: Type.Object({
      headers: Type.Record(Type.String(), Type.Union([Type.String(), Type.Array(Type.String())]), {
        maxProperties: MAX_ITEM_HEADERS,
        description: 'The headers as they arrived, with `Upstash-Signature`.',
      }),
      body: Type.Optional(Type.String({ description: 'The body as text.' })),
      bodyBase64: Type.Optional(Type.String({ description: 'The body in base64. Takes precedence over `body`.' })),
      url: Type.Optional(
        Type.String({ description: 'The URL that the receiver expects. Absent: the URL is not compared.' }),
      ),
    }),
  },
  success: {
    status: 200,
    description: 'Whether a receiver would accept the delivery, and the problems.',
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
