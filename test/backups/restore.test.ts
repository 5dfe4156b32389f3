import { Redis } from 'iovalkey'
import { beforeAll, expect, it, onTestFinished } from 'vitest'
import { type RunningHomeport, startHomeport } from '../support/index.js'

interface Database {
  readonly database_id: string
  readonly port: number
  readonly password: string
}

let homeport: RunningHomeport

beforeAll(async () => {
  homeport = await startHomeport()
})

it('keeps the connections of clients over a backup and a restore', async () => {
  const fields = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1', read_regions: ['eu-west-1'] }
  const database = (await homeport.api('POST', '/v2/redis/database', fields)).body as Database
  const client = new Redis({
    host: '127.0.0.1',
    port: database.port,
    password: database.password,
    retryStrategy: () => null,
  })
  let closed = false
  client.on('error', () => undefined)
  client.on('close', () => {
    closed = true
  })
  onTestFinished(() => client.disconnect())
  await client.set('k', 'old')
  const path = (verb: string) => `/v2/redis/${verb}/${database.database_id}`
  expect(await homeport.api('POST', path('create-backup'), { name: 'old' })).toMatchObject({ status: 200 })
  const [backup] = (await homeport.api('GET', path('list-backup'))).body as { backup_id: string }[]
  await client.set('k', 'new')
  const restored = homeport.api('POST', path('restore-backup'), { backup_id: backup?.backup_id })
  const seen = new Set<string>()
  let isOver = false
  void restored.then(() => {
    isOver = true
  })
  while (!isOver) {
    // Commands pending when the engine stops get a clear error; later ones wait.
    seen.add(await client.get('k').then(String, (error: Error) => error.message.split(' ')[0] ?? ''))
  }
  expect(await restored).toMatchObject({ status: 200 })
  expect(await client.get('k')).toBe('old')
  expect([...seen].filter((value) => !['new', 'old', 'ERR'].includes(value))).toEqual([])
  expect(closed).toBe(false)
})
