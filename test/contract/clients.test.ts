import { symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Validator } from '@seriousme/openapi-schema-validator'
import { beforeAll, describe, expect, it } from 'vitest'
import { type RunningHomeport, run, startHomeport, tempDir } from '../support/index.js'

/** What a user does with `/openapi.json`: validates it, generates a typed client, compiles a program, and runs it. */

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
    ...{ target: 'es2023', lib: ['es2023', 'dom'], module: 'nodenext', moduleResolution: 'nodenext', types: ['node'] },
    ...{ strict: true, noUncheckedIndexedAccess: true, skipLibCheck: true, outDir: 'out' },
  },
}

let homeport: RunningHomeport
const folder = tempDir()
const inFolder = (...args: string[]) => run(process.execPath, args, { cwd: folder, env: credentials() })

function credentials(): Record<string, string> {
  const { email, apiKey, queueToken } = homeport.credentials
  return { EMAIL: email, API_KEY: apiKey, QUEUE_TOKEN: queueToken }
}

beforeAll(async () => {
  homeport = await startHomeport()
  symlinkSync(PACKAGES, join(folder, 'node_modules'))
  writeFileSync(join(folder, 'package.json'), '{"type":"module"}')
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG))
  writeFileSync(join(folder, 'program.ts'), PROGRAM)
})

describe.each(['management', 'queue'] as const)('/openapi.json of the %s service', (name) => {
  it('is valid OpenAPI 3.1, and a typed client can be generated', async () => {
    const url = name === 'management' ? homeport.apiUrl : homeport.queueUrl
    const file = join(folder, `${name}.json`)
    writeFileSync(file, await (await fetch(`${url}/openapi.json`)).text())
    const validator = new Validator()
    expect(await validator.validate(file)).toEqual({ valid: true })
    expect(validator.version).toBe('3.1')
    const generated = await inFolder(join(PACKAGES, 'oazapfts/dist/cli.js'), `${name}.json`, `${name}.ts`)
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
