import { Type } from 'typebox'
import { expect, it } from 'vitest'
import { cancelWorkflowRuns, startBulkAction } from '../contract/bulk/actions.js'
import { createDatabase } from '../contract/databases/databases.js'
import { endpoint as declare } from '../contract/endpoint.js'
import { publishMessage } from '../contract/queue/messages.js'
import { createSchedule } from '../contract/queue/schedules.js'
import { exampleOf, openApi } from './openapi.js'

const endpoint = Type.Object({
  url: Type.String({ description: 'Where to.' }),
  name: Type.Optional(Type.String()),
})
const group = Type.Object({
  kind: Type.Enum(['a', 'b']),
  endpoints: Type.Array(endpoint),
  limits: Type.Object({ rate: Type.Integer({ minimum: 5 }) }),
})

it('the document makes an example of the required fields', () => {
  expect(exampleOf(group)).toEqual({ kind: 'a', endpoints: [{ url: '...' }], limits: { rate: 5 } })
})

it('the document prefers the example in the schema', () => {
  expect(exampleOf(Type.String({ examples: ['us-east-1'] }))).toBe('us-east-1')
})

interface Operation {
  readonly operationId: string
  readonly parameters: readonly { name: string; in: string; required: boolean; schema: object }[]
  readonly requestBody?: { readonly content: Record<string, { readonly example?: object }> }
  readonly responses: Record<string, { readonly description: string; readonly headers?: object }>
}

const described = (...endpoints: Parameters<typeof openApi>[0]['endpoints'][number][]) => {
  const document = openApi({ service: 'queue', version: '1.2.3', publicUrl: 'http://localhost', endpoints })
  return (document as { paths: Record<string, Record<string, Operation>> }).paths
}
const headersOf = (operation: Operation | undefined) =>
  operation?.parameters.filter((parameter) => parameter.in === 'header') ?? []

it('the document describes headers with their types', () => {
  const headers = headersOf(described(publishMessage)['/v2/publish/{destination}']?.post)
  expect(headers).toContainEqual({
    name: 'Upstash-Retries',
    in: 'header',
    required: false,
    description: expect.stringMatching(/attempt/),
    schema: { type: 'integer', minimum: 0, maximum: 1_000 },
  })
  expect(headers.map(({ name }) => name)).toContain('Upstash-Failure-Callback-Retries')
  const cron = headersOf(described(createSchedule)['/v2/schedules/{destination}']?.post)[0]
  expect(cron).toMatchObject({ name: 'Upstash-Cron', required: true })
  const [key] = headersOf(described(createDatabase)['/v2/redis/database']?.post)
  expect(key).toMatchObject({ name: 'Idempotency-Key', schema: { maxLength: 255 } })
})

it('the document describes each alias as an operation of its own', () => {
  const paths = described(createSchedule)
  expect(paths['/v2/schedules/{scheduleId}/pause']?.post?.operationId).toBe('pauseScheduleByPost')
})

it('the document describes Retry-After where a client may retry', () => {
  const responses = described(createSchedule)['/v2/schedules/{destination}']?.post?.responses
  expect(responses?.['503']?.headers).toHaveProperty('Retry-After')
  expect(responses?.['400']).not.toHaveProperty('headers')
})

it('the document lists the errors that come before the handler', () => {
  const describing = (operation: Operation | undefined, status: number) => operation?.responses[status]?.description
  const published = described(publishMessage)['/v2/publish/{destination}']?.post
  expect(describing(published, 403)).toMatch(/account_suspended; readonly_api_key; token_scope/)
  expect(describing(published, 503)).toMatch(/memory_short/)
  const created = described(createDatabase)['/v2/redis/database']?.post
  expect(describing(created, 403)).toMatch(/account_suspended; readonly_api_key(?!.*token_scope)/)
})

it('the document shows a selector in examples that would select everything without one', () => {
  const paths = described(cancelWorkflowRuns, startBulkAction)
  const exampleOn = (operation?: Operation) => operation?.requestBody?.content['application/json']?.example
  expect(exampleOn(paths['/v2/workflows/runs']?.delete)).toEqual({ workflowRunIds: '...' })
  expect(exampleOn(paths['/v2/workflows/bulkActions']?.post)).toHaveProperty('selector')
})

it('the document uses one path for two that differ in the names of their parameters', () => {
  const at = (id: string, method: 'GET' | 'DELETE', name: string) =>
    declare({
      ...createSchedule,
      id,
      method,
      path: `/v2/things/{${name}}`,
      aliases: [],
      params: Type.Object({ [name]: Type.String() }),
    })
  const paths = described(at('one', 'GET', 'id'), at('two', 'DELETE', 'other'))
  expect(Object.keys(paths)).toEqual(['/v2/things/{id}'])
  expect(paths['/v2/things/{id}']?.delete?.parameters[0]).toMatchObject({ name: 'id', in: 'path' })
})
