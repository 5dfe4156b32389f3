import { Redis } from 'iovalkey'
import { beforeAll, expect, it } from 'vitest'
import type { DatabaseRecord } from '../../src/contract/databases/databases.js'
import { atCleanup, call, newPlace, tempDir, waitFor } from '../support/index.js'
import { engineCalls } from './engine-calls.js'
import { startNode, startNodeStore, type TestNode } from './test-node.js'

/** Replicas of read regions at nodes of those regions. */

beforeAll(startNodeStore)

const place = () => newPlace({ dataDir: tempDir() })
type Made = DatabaseRecord & Record<'rest_token' | 'read_only_rest_token' | 'password', string>

const nodeIn = async (name: string, host: string, region: string) => startNode(name, await place(), { host, region })

async function create(node: TestNode, name: string): Promise<Made> {
  const body = {
    ...{ database_name: name, platform: 'aws', primary_region: 'us-east-1', plan: 'payg' },
    read_regions: ['eu-west-1'],
  }
  const made = await node.api('POST', '/v2/redis/database', body)
  expect(made).toMatchObject({ status: 200 })
  return made.body as Made
}

const knowEachOther = (node: TestNode, name: string) =>
  waitFor(
    async () =>
      ((await node.api('GET', '/v2/nodes')).body as { name: string }[]).some(
        (one) => one.name === name && 'engine_memory' in one,
      ),
    { what: 'the nodes to know each other' },
  )

const rest = (host: string, node: TestNode, token: string, command: readonly unknown[], syncToken?: string) =>
  call(`http://${host}:${node.place.restPort}/`, {
    method: 'POST',
    json: command,
    headers: { authorization: `Bearer ${token}`, ...(syncToken !== undefined && { 'upstash-sync-token': syncToken }) },
  })

function client(host: string, { port, password }: Made): Redis {
  const redis = new Redis({ host, port, password, retryStrategy: () => null })
  redis.on('error', () => undefined)
  atCleanup(() => redis.disconnect())
  return redis
}

it('are read at a node of the region, and show what was written', async () => {
  const [hostA, hostB] = ['127.0.0.2', '127.0.0.3'] as const
  const [a, b] = await Promise.all([nodeIn('a', hostA, 'us-east-1'), nodeIn('b', hostB, 'eu-west-1')])
  await knowEachOther(a, 'b')
  const made = await create(a, 'near')
  const calls = (node: TestNode, region: string) => engineCalls(node.place.dataDir, region, made)
  const atHome = () => calls(a, 'us-east-1')
  const atReplica = () => calls(b, 'eu-west-1')

  expect((await rest(hostB, b, made.rest_token, ['SET', 'k', '0'])).body).toEqual({ result: 'OK' })
  const before = await atReplica()
  await waitFor(
    async () => {
      expect((await rest(hostB, b, made.rest_token, ['GET', 'k'])).body).toEqual({ result: '0' })
      return (await atReplica()) > before
    },
    { what: 'the replica to answer a read' },
  )
  for (let value = 1; value <= 50; value++) {
    await rest(hostB, b, made.rest_token, ['SET', 'k', value])
    expect((await rest(hostB, b, made.rest_token, ['GET', 'k'])).body).toEqual({ result: `${value}` })
  }
  const home = await atHome()
  for (let count = 0; count < 20; count++) await rest(hostB, b, made.rest_token, ['GET', 'k'])
  expect((await atHome()) - home).toBeLessThan(10)

  // The Redis protocol, at the port of the database on the same node.
  const redis = client(hostB, made)
  const other = client(hostB, made)
  for (let value = 100; value <= 150; value++) {
    await redis.set('k', value)
    expect(await other.get('k')).toBe(`${value}`)
    expect(await redis.get('k')).toBe(`${value}`)
  }
  const [homeBefore, replicaBefore] = [await atHome(), await atReplica()]
  expect(await Promise.all(Array.from({ length: 200 }, () => redis.get('k')))).toEqual(Array(200).fill('150'))
  expect((await atReplica()) - replicaBefore).toBeGreaterThan(150)
  expect((await atHome()) - homeBefore).toBeLessThan(50)
  expect(await redis.multi().incr('n').get('n').exec()).toEqual([
    [null, 1],
    [null, '1'],
  ])
  expect(await redis.pipeline().set('p', 1).get('p').incr('p').get('p').get('k').exec()).toEqual(
    ['OK', '1', 2, '2', '150'].map((value) => [null, value]),
  )
  const large = 'x'.repeat(3_000_000)
  expect(await redis.set('large', large)).toBe('OK')
  expect(await redis.get('large')).toBe(large)
  await redis.subscribe('news')
  await expect(redis.get('k')).rejects.toThrow()
}, 90_000)
