import { Ajv2020 } from 'ajv/dist/2020.js'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Endpoint } from '../../src/contract/endpoint.js'
import { FORMATS, type JsonSchema, type OpenApiDocument, type OperationObject } from '../e2e/support/operations.js'
import { useService } from '../e2e/support/service.js'
import { declaredEndpoints } from './declared.js'

/** Compares `/openapi.json` and `/docs` of the listeners with the declarations and with OpenAPI 3.1. */

const service = useService()
const endpoints = await declaredEndpoints()

const originOf = (name: string): string => (name === 'management' ? service.homeport.apiUrl : service.homeport.queueUrl)
const documentOf = (name: string): OpenApiDocument => {
  const document = service.watch.documents.get(originOf(name))
  if (!document) throw new Error(`the ${name} service has no description`)
  return document
}

beforeAll(async () => {
  for (const name of ['management', 'queue']) {
    const response = await fetch(`${originOf(name)}/docs`)
    expect(response.headers.get('content-type')).toContain('text/html')
    expect(await response.text()).toContain(documentOf(name).info.title)
  }
})

const operationsOf = (document: OpenApiDocument): { where: string; path: string; operation: OperationObject }[] =>
  Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ where: `${method} ${path}`, path, operation })),
  )

/** A path without the names of its parameters: OpenAPI treats two paths of the same shape as one. */
const shapeOf = (path: string): string => path.replace(/\{\+?\w+\}/g, '{}')

it('every endpoint is declared once', () => {
  const ids = endpoints.map(({ id }) => id)
  expect(ids.length).toBeGreaterThan(30)
  expect(ids).toEqual([...new Set(ids)])
})

describe.each(endpoints.map((endpoint) => [endpoint.id, endpoint] as const))('%s', (id, endpoint: Endpoint) => {
  it('is served, and its description matches its declaration', () => {
    const found = operationsOf(documentOf(endpoint.service)).find(({ operation }) => operation.operationId === id)
    expect(found?.where).toBe(`${endpoint.method.toLowerCase()} ${found?.path}`)
    expect(shapeOf(found?.path ?? '')).toBe(shapeOf(endpoint.path))
    const operation = found?.operation
    const { summary, description, topic } = endpoint
    expect(operation).toMatchObject({ summary, description, tags: [topic] })
    const answers = [endpoint.success, ...(endpoint.otherAnswers ?? [])]
    expect(Object.keys(operation?.responses ?? {})).toEqual(
      expect.arrayContaining(answers.map(({ status }) => String(status))),
    )
    const described = JSON.stringify(operation?.responses)
    for (const code of endpoint.errors) expect(described).toContain(code)
  })

  it('declares the errors of an unreachable store, and a change those of a full disk', () => {
    const found = operationsOf(documentOf(endpoint.service)).find(({ operation }) => operation.operationId === id)
    const refusal = found?.operation.responses['503']?.description
    expect(refusal).toContain('store_unavailable')
    if (endpoint.access === 'write') expect(refusal).toContain('store_full')
  })
})

describe.each(['management', 'queue'])('the OpenAPI document of the %s service', (name) => {
  it('describes nothing that is not declared', () => {
    const known = endpoints.filter((endpoint) => endpoint.service === name).map(({ id }) => id)
    const described = operationsOf(documentOf(name)).map(({ operation }) => operation.operationId)
    expect(described.sort()).toEqual(known.sort())
  })

  it('has the required fields of OpenAPI 3.1', () => {
    const { openapi, info, servers, components } = documentOf(name)
    expect(openapi).toMatch(/^3\.1\.\d+$/)
    expect(info).toEqual({ title: expect.stringMatching(/./), version: expect.stringMatching(/^\d+\.\d+\.\d+/) })
    expect(servers.map(({ url }) => new URL(url).origin)).toEqual([originOf(name)])
    for (const scheme of Object.values(components.securitySchemes)) {
      expect(scheme).toMatchObject({ type: 'http', scheme: expect.stringMatching(/^(basic|bearer)$/) })
    }
  })

  it('has no two paths that differ in the names of their parameters only', () => {
    const shapes = Object.keys(documentOf(name).paths).map(shapeOf)
    expect(shapes).toEqual([...new Set(shapes)])
  })

  it('has a distinct summary for every operation', () => {
    const summaries = operationsOf(documentOf(name)).map(({ operation }) => operation.summary)
    expect(summaries).toEqual([...new Set(summaries)])
  })

  it('names and describes every operation, its parameters and its answers', () => {
    const document = documentOf(name)
    for (const { where, path, operation } of operationsOf(document)) {
      expect(operation.operationId, where).toMatch(/^[a-z][A-Za-z0-9]+$/)
      expect(operation.summary.length, where).toBeGreaterThan(5)
      expect(operation.description.length, where).toBeGreaterThan(5)
      const parameters = operation.parameters.map((parameter) => `${parameter.in} ${parameter.name}`)
      expect(parameters, where).toEqual([...new Set(parameters)])
      for (const { description } of operation.parameters) expect(description, where).toMatch(/.{6}/)
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map((match) => match[1])
      const declared = operation.parameters.filter((parameter) => parameter.in === 'path')
      expect(declared.map((parameter) => parameter.name).sort(), where).toEqual(inPath.sort())
      expect(
        declared.every((parameter) => parameter.required),
        where,
      ).toBe(true)
      for (const requirement of operation.security) {
        expect(Object.keys(document.components.securitySchemes), where).toEqual(
          expect.arrayContaining(Object.keys(requirement)),
        )
      }
      for (const [status, response] of Object.entries(operation.responses)) {
        expect(status, where).toMatch(/^[2-5]\d\d$/)
        expect(response.description.length, `${where} ${status}`).toBeGreaterThan(0)
        expect(Object.keys(response.content), `${where} ${status}`).toHaveLength(1)
      }
    }
  })

  it('has only valid schemas of JSON Schema 2020-12, and every reference resolves', () => {
    const document = documentOf(name)
    const ajv = new Ajv2020({ strictSchema: true, strictTypes: false, strictTuples: false, formats: FORMATS })
    for (const { where, schema } of schemasOf(document)) {
      if (schema.$ref === '#/components/schemas/Error') continue
      expect(() => ajv.compile(schema), where).not.toThrow()
    }
    const references = JSON.stringify(document).match(/"\$ref":"[^"]+"/g) ?? []
    expect([...new Set(references)]).toEqual(['"$ref":"#/components/schemas/Error"'])
    expect(document.components.schemas.Error).toMatchObject({ required: ['error'] })
  })
})

it('shows an example of every JSON body that fits its schema', () => {
  for (const name of ['management', 'queue']) {
    const ajv = new Ajv2020({ strict: false, formats: FORMATS })
    for (const { where, operation } of operationsOf(documentOf(name))) {
      for (const [status, body] of [
        ['request', operation.requestBody],
        ...Object.entries(operation.responses),
      ] as const) {
        const { schema, example } = body?.content['application/json'] ?? {}
        if (!schema || schema.$ref) continue
        expect(
          ajv.validate(schema, example),
          `${where} ${status}: ${JSON.stringify(example)} ${ajv.errorsText()}`,
        ).toBe(true)
      }
    }
  }
})

function schemasOf(document: OpenApiDocument): { where: string; schema: JsonSchema }[] {
  return operationsOf(document).flatMap(({ where, operation }) => {
    const bodies = [operation.requestBody, ...Object.values(operation.responses)]
    const media = bodies.flatMap((body) => Object.values(body?.content ?? {}))
    return [...operation.parameters, ...media].map(({ schema }) => ({ where, schema }))
  })
}
