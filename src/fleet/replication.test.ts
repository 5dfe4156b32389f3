import { expect, it } from 'vitest'
import { waitFor } from '../../test/support/index.js'
import { distance } from './replication.js'
import { clientOf, PASSWORD, specOf, startFleet } from './testing/fleet-house.js'

it('tells how far each member has come, the primary first', async () => {
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
  expect(distance(info(ofPrimary), info(ofReplica))).toEqual({ lagBytes, heardSecondsAgo })
})

it('answers nothing for what does not run, and wakes nothing', async () => {
  const { fleet } = await startFleet()
  expect(await fleet.replication('db_unknown')).toEqual([])
  await fleet.ensure(specOf('db_stopped', [], { wanted: 'stopped' }))
  expect(await fleet.replication('db_stopped')).toEqual([])
})
