import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import type { Page } from 'playwright-core'
import { beforeAll, describe, expect, it } from 'vitest'
import type { Endpoint } from '../../src/contract/endpoint.js'
import { newContext, sharedBrowser } from '../console/support/browser.js'
import { FORMATS, type JsonSchema, type OpenApiDocument, type OperationObject } from '../e2e/support/operations.js'
import { useService } from '../e2e/support/service.js'
import { commandHost, run, tempDir } from '../support/index.js'
import { declaredEndpoints } from './declared.js'

/**
 * Compares `/openapi.json` and `/docs` of the listeners with the declarations and with OpenAPI 3.1. Then does what a user does:
 * opens `/docs` in a browser to search and to try operations out; validates `/openapi.json`, generates typed clients, compiles a
 * program, and runs it.
 */

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
    for (const { where, schema } of schemasOf(document)) {
      if (schema.$ref === '#/components/schemas/Error') continue
      expect(() => compile(schema), where).not.toThrow()
    }
    const references = JSON.stringify(document).match(/"\$ref":"[^"]+"/g) ?? []
    expect([...new Set(references)]).toEqual(['"$ref":"#/components/schemas/Error"'])
    expect(document.components.schemas.Error).toMatchObject({ required: ['error'] })
  })

  it('shows an example of every JSON body that fits its schema', () => {
    for (const { where, operation } of operationsOf(documentOf(name))) {
      for (const body of [operation.requestBody, ...Object.values(operation.responses)]) {
        const { schema, example } = body?.content['application/json'] ?? {}
        if (!schema || schema.$ref) continue
        const fits = compile(schema)
        expect([fits(example), fits.errors, example], where).toEqual([true, null, example])
      }
    }
  })
})

const ajv = new Ajv2020({ strictSchema: true, strictTypes: false, strictTuples: false, formats: FORMATS })
const compiled = new Map<string, ValidateFunction>()

/** Compiles a schema, once for all places where the same is written. @throws Error where it is not valid. */
function compile(schema: JsonSchema): ValidateFunction {
  const text = JSON.stringify(schema)
  const known = compiled.get(text) ?? ajv.compile(schema)
  compiled.set(text, known)
  return known
}

function schemasOf(document: OpenApiDocument): { where: string; schema: JsonSchema }[] {
  return operationsOf(document).flatMap(({ where, operation }) => {
    const bodies = [operation.requestBody, ...Object.values(operation.responses)]
    const media = bodies.flatMap((body) => Object.values(body?.content ?? {}))
    return [...operation.parameters, ...media].map(({ schema }) => ({ where, schema }))
  })
}

let page: Page
const requested = new Set<string>()
const complaints: string[] = []

/** The queue service by a name that differs from its public URL. */
const localName = (): string => service.homeport.queueUrl.replace('127.0.0.1', 'localhost')

async function authorize(fields: Readonly<Record<string, string>>): Promise<void> {
  await page.locator('.auth-wrapper').getByRole('button').first().click()
  for (const [name, value] of Object.entries(fields)) await page.locator(`#auth-${name}`).fill(value)
  await page.getByRole('button', { name: 'Apply credentials' }).click()
  await page.getByRole('button', { name: 'Close' }).click()
}

/** Finds the only operation for some words, sends it, and answers status and body. */
async function tryOut(words: string, path: string): Promise<string | null> {
  await page.getByRole('searchbox', { name: 'Search operations' }).fill(words)
  const operations = page.locator('.opblock-summary-control')
  await expect.poll(() => operations.allInnerTexts()).toEqual([expect.stringContaining(path)])
  await operations.click()
  await page.getByRole('button', { name: 'Try it out' }).click()
  await page.getByRole('button', { name: 'Execute' }).click()
  return page.locator('.live-responses-table .response').first().textContent()
}

describe('the page /docs in a browser, which is the same for both services', () => {
  beforeAll(async () => {
    page = await (await newContext(await sharedBrowser(), service.homeport.apiUrl)).newPage()
    page.on('request', (request) => requested.add(new URL(request.url()).origin))
    page.on('pageerror', (error) => complaints.push(String(error)))
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()))
  })

  it('finds an operation of the queue and sends it with the token', async () => {
    await page.goto(`${localName()}/docs`)
    await page.locator('.opblock').first().waitFor()
    await authorize({ 'bearer-value': service.homeport.credentials.queueToken })
    expect(await tryOut('signing read get', '/v2/keys')).toContain(service.homeport.credentials.currentSigningKey)
  })

  it('shows the settings of a message as headers', async () => {
    await page.getByRole('searchbox', { name: 'Search operations' }).fill('publishMessage')
    await page.locator('.opblock-summary-control').click()
    const row = page.locator('tr[data-param-name="Upstash-Retries"]')
    expect(await row.textContent()).toMatch(/integer[\s\S]*Most retries after the first attempt/)
  })

  it('follows the colour scheme of the system', async () => {
    const isDark = () => page.evaluate("document.documentElement.classList.contains('dark-mode')")
    await page.emulateMedia({ colorScheme: 'dark' })
    await expect.poll(isDark).toBe(true)
    await page.emulateMedia({ colorScheme: 'light' })
    await expect.poll(isDark).toBe(false)
  })

  it('asks no other server, and the browser complains about nothing', () => {
    expect([...requested]).toEqual([localName()])
    expect(complaints).toEqual([])
  })
})

const PACKAGES = fileURLToPath(new URL('../../node_modules', import.meta.url))

/** The program of a user. The compiler checks every call, parameter and field of a response. */
const PROGRAM = `
import * as management from './management.js'
import * as queue from './queue.js'

const { env } = process
management.defaults.headers = { Authorization: 'Basic ' + btoa(env.EMAIL + ':' + env.API_KEY) }
queue.defaults.headers = { Authorization: 'Bearer ' + env.QUEUE_TOKEN }

const body = { database_name: 'typed', platform: 'aws', primary_region: 'us-east-1' } as const
const created = await management.createDatabase(body, { idempotencyKey: 'once' })
const repeated = await management.createDatabase(body, { idempotencyKey: 'once' })
if (created.status !== 200 || repeated.status !== 200) throw new Error(JSON.stringify(created))

const settings = { upstashDelay: '1h', upstashRetries: 5, upstashLabel: 'typed', upstashMethod: 'PUT' } as const
const published = await queue.publishMessage('https://example.com/hook?a=b', { order: 7 }, settings)
if (published.status !== 200 || Array.isArray(published.data)) throw new Error(JSON.stringify(published))
const message = await queue.getMessage(published.data.messageId)
if (message.status !== 200) throw new Error(message.data.error)

const triggered = await queue.triggerWorkflow('https://example.com/flow', { a: 1 }, { upstashDelay: '1h', upstashWorkflowRunId: 'wfr_typed' })
const runs = await queue.listWorkflowRuns({ state: ['RUN_STARTED'], count: 5 })
if (runs.status !== 200) throw new Error(runs.data.error)
const paused = await queue.pinFlowKey('tenant', { parallelism: 3 })
const missing = await queue.getMessage('msg_none')
const error: string = missing.status === 404 ? missing.data.error : ''

console.log(JSON.stringify({
  created: created.data.database_id, repeated: repeated.data.database_id,
  message: message.data, triggered: triggered.status, runs: runs.data.runs, paused: paused.status, error,
}))
`

const TSCONFIG = {
  compilerOptions: {
    target: 'es2023',
    lib: ['es2023', 'dom'],
    module: 'nodenext',
    moduleResolution: 'nodenext',
    types: ['node'],
    strict: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    outDir: 'out',
  },
}

const folder = tempDir()
const generate = commandHost({ main: join(PACKAGES, 'oazapfts/dist/cli.js') })
const inFolder = (...args: string[]) => run(process.execPath, args, { cwd: folder, env: credentials() })

function credentials(): Record<string, string> {
  const { email, apiKey, queueToken } = service.homeport.credentials
  return { EMAIL: email, API_KEY: apiKey, QUEUE_TOKEN: queueToken }
}

beforeAll(() => {
  symlinkSync(PACKAGES, join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  writeFileSync(join(folder, 'program.ts'), PROGRAM)
})

describe.each(['management', 'queue'] as const)('/openapi.json of the %s service', (name) => {
  it('is valid OpenAPI 3.1, and a typed client can be generated', async () => {
    const file = join(folder, `${name}.json`)
    writeFileSync(file, JSON.stringify(documentOf(name)))
    const validator = new Validator()
    expect(await validator.validate(file)).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
    const generated = await generate([`${name}.json`, `${name}.ts`], { cwd: folder })
    expect(generated).toMatchObject({ code: 0, stderr: '' })
  })
})

it('a program with the generated clients compiles and works', async () => {
  expect(await inFolder(join(PACKAGES, 'typescript/bin/tsc'), '-p', '.')).toMatchObject({ code: 0, stdout: '' })
  const { code, stdout, stderr } = await inFolder('out/program.js')
  expect([code, stderr]).toEqual([0, ''])
  const seen = JSON.parse(stdout)
  expect(seen.repeated).toBe(seen.created)
  expect(seen).toMatchObject({
    message: {
      url: 'https://example.com/hook?a=b',
      method: 'PUT',
      maxRetries: 5,
      labels: ['typed'],
      body: '{"order":7}',
    },
    triggered: 200,
    runs: [{ workflowRunId: 'wfr_typed', workflowUrl: 'https://example.com/flow' }],
    paused: 200,
    error: expect.stringContaining('msg_none'),
  })
})
