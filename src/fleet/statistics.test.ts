import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { askEngine } from './ask.js'
import { lagOf } from './statistics.js'
import { clientOf, PASSWORD, specOf, startFleet } from './testing/test-fleet.js'

it('a sample has the size of the database and the lookups of each process', async () => {
  const { fleet } = await startFleet()
  const users = [{ name: 'default', password: PASSWORD, rules: '~* &* +@all' }]
  await fleet.ensure(specOf('db_sampled', ['eu-west-1'], { users }))
  const [primary, replica] = await fleet.endpoints('db_sampled')
  const client = clientOf(primary)
  await client.mset('a', 'x'.repeat(100_000), 'b', '2')
  await client.mget('a', 'b', 'missing')
  const reader = clientOf(replica)
  await waitFor(async () => (await reader.get('b')) === '2', { what: 'the replica to have the key' })
  const watcher = clientOf(primary)
  await watcher.call('MONITOR')
  const sample = await fleet.sample('db_sampled')
  expect(sample).toMatchObject({
    keys: 2,
    monitors: 1,
    lookups: [
      { generation: primary?.generation, hits: 2, misses: 1 },
      { generation: replica?.generation, hits: 1, misses: expect.any(Number) },
    ],
  })
  expect(sample?.usedBytes).toBeGreaterThan(100_000)
  expect(sample?.diskBytes).toBeGreaterThan(100_000)
  watcher.disconnect()
})

it('a sample fails when the engine refuses the login or does not exist', async () => {
  const { fleet } = await startFleet()
  await fleet.ensure(specOf('db_asked'))
  const [{ socketPath } = { socketPath: '' }] = await fleet.endpoints('db_asked')
  const secrets = { control: 'wrong', replication: '' }
  await expect(askEngine({ socketPath, secrets }, [['INFO']])).rejects.toThrow('WRONGPASS')
  await expect(askEngine({ socketPath: `${socketPath}.gone`, secrets }, [['INFO']])).rejects.toThrow('ENOENT')
})

it('a sample neither starts engines nor waits for them', async () => {
  const { fleet } = await startFleet()
  expect(await fleet.sample('db_unknown')).toBeUndefined()
  await fleet.ensure(specOf('db_stopped', [], { state: 'stopped' }))
  expect(await fleet.sample('db_stopped')).toBeUndefined()
  const coming = fleet.ensure(specOf('db_coming'))
  expect(await fleet.sample('db_coming')).toBeUndefined()
  await coming
  expect(await fleet.sample('db_coming')).toMatchObject({ keys: 0 })
})

it('the fleet reports the replication position of each member, primary first', async () => {
  const { fleet } = await startFleet()
  const users = [{ name: 'default', password: PASSWORD, rules: '~* &* +@all' }]
  await fleet.ensure(specOf('db_followed', ['eu-west-1'], { users }))
  const [primary] = await fleet.endpoints('db_followed')
  await clientOf(primary).set('a', 'x'.repeat(10_000))
  const follows = async () => (await fleet.replication('db_followed')).every(({ lagBytes }) => lagBytes === 0)
  await waitFor(follows, { what: 'the replica to have everything' })
  expect(await fleet.replication('db_followed')).toEqual([
    { region: primary?.region, role: 'primary', lagBytes: 0, heardSecondsAgo: 0 },
    { region: 'eu-west-1', role: 'replica', lagBytes: 0, heardSecondsAgo: expect.any(Number) },
  ])
})

it.each([
  ['master_repl_offset:500', 'slave_repl_offset:420\r\nmaster_last_io_seconds_ago:3', 80, 3],
  ['master_repl_offset:500', 'slave_repl_offset:510\r\nmaster_last_io_seconds_ago:-1', 0, 0],
])('a primary with %j and a replica with %j are %i bytes apart', (ofPrimary, ofReplica, lagBytes, heardSecondsAgo) => {
  const info = (lines: string) => `# Replication\r\n${lines}\r\nrole:any\r\n`
  expect(lagOf(info(ofPrimary), info(ofReplica))).toEqual({ lagBytes, heardSecondsAgo })
})

it('the fleet reports nothing for a database that does not run, and starts nothing', async () => {
  const { fleet } = await startFleet()
  expect(await fleet.replication('db_unknown')).toEqual([])
  await fleet.ensure(specOf('db_stopped', [], { state: 'stopped' }))
  expect(await fleet.replication('db_stopped')).toEqual([])
})
