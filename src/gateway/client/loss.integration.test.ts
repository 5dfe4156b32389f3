import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { duplexPair } from 'node:stream'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import { freePort, waitFor } from '../../../test/support/index.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'

let rig: Rig

beforeEach(async () => {
  rig = await startRig()
})

const UNAVAILABLE =
  '-ERR The engine of this database cannot be reached. Nothing was applied; try again in a moment.\r\n'
const LOST =
  '-ERR The engine of this database stopped before it replied. The command may or may not have been applied: ' +
  'check, or repeat it if that is safe.\r\n'

const rest = (): Promise<Response> =>
  fetch(`${rig.restUrl}/incr/n`, { headers: { authorization: `Bearer ${CREDENTIALS.token}` } })

describe('when the engine dies', () => {
  it('pending commands fail, the connection stays, and the next command reaches the new engine', async () => {
    const counts = () => rig.gateway.usageOf('db-one')?.meter.totals()
    const raw = await new RawClient(rig.port).login()
    await raw.send('SET a 1\r\n').expect('+OK\r\n')
    const slow = new RawClient(rig.port)
    await (await slow.login()).send('EVAL "while true do end" 0\r\n')
    await waitFor(() => counts()?.scripts === 1, { what: 'the script to be sent' })
    raw.send('INCR a\r\nSELECT 0\r\nINCR a\r\n')
    await waitFor(() => counts()?.writes === 3, { what: 'the commands to be sent' })
    await rig.engine.kill()
    await raw.expect(`${LOST}+OK\r\n${LOST}`)
    await slow.expect(LOST)
    await raw.send('GET a\r\n').expect(UNAVAILABLE)
    raw.send('GET a\r\n')
    await rig.engine.start()
    await raw.expect('$-1\r\n')
  })

  it('REST answers 503 with Retry-After, and serves again afterwards', async () => {
    expect((await rest()).status).toBe(200)
    await rig.engine.kill()
    await waitFor(async () => (await rest()).status === 503, { what: 'the loss to be noticed' })
    const response = await rest()
    expect(response.headers.get('retry-after')).toBe('1')
    expect(await response.json()).toEqual({ error: UNAVAILABLE.slice(1, -2) })
    await rig.engine.start()
    expect(await (await rest()).json()).toEqual({ result: 1 })
  })

  it('a client in a transaction is disconnected, because its queued commands are lost', async () => {
    const raw = await new RawClient(rig.port).login()
    await raw.send('MULTI\r\nSET a 1\r\n').expect('+OK\r\n+QUEUED\r\n')
    await rig.engine.kill()
    await raw.expectClosed()
  })

  it('a client whose transaction could not begin is disconnected, so its commands do not run one by one', async () => {
    const raw = await new RawClient(rig.port).login()
    await rig.engine.kill()
    raw.send('MULTI\r\n')
    await raw.expect(UNAVAILABLE)
    await raw.expectClosed()
  })

  it('a subscriber is disconnected, so that it subscribes again', async () => {
    const raw = await new RawClient(rig.port).login()
    await raw.send('SUBSCRIBE a\r\n').expect('*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n')
    await rig.engine.kill()
    await raw.expectClosed()
  })
})

it('the gateway passes on the error of the fleet when the engine cannot be started', async () => {
  rig.fleet.available = false
  const response = await rest()
  expect(response.status).toBeGreaterThanOrEqual(500)
  expect(JSON.stringify(await response.json())).toContain('the test says so')
})

it('the gateway closes the connections and the port of a database that is removed', async () => {
  const raw = await new RawClient(rig.port).login()
  rig.directory.remove('db-one')
  await raw.expectClosed()
  await waitFor(() => refuses(rig.port), { what: 'the port to be closed' })
  expect((await rest()).status).toBe(401)
})

it('the gateway opens the port of a database that is added, and reports a port that another program holds', async () => {
  const port = rig.port
  rig.directory.put({ databaseId: 'db-two', port, tls: false })
  await expect(rig.gateway.openDatabase('db-two')).rejects.toMatchObject({ code: 'port_taken' })
  await expect(rig.gateway.openDatabase('db-none')).rejects.toMatchObject({ code: 'database_not_found' })
  await rig.gateway.openDatabase('db-one')
})

it('the gateway opens a port that another program held once it is free', async () => {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  const { port } = holder.address() as AddressInfo
  rig.directory.put({ databaseId: 'db-two', port, tls: false })
  await expect(rig.gateway.openDatabase('db-two')).rejects.toMatchObject({ code: 'port_taken' })
  // Another node of this machine may hold the port for a moment and pass clients on. The gateway serves them like others.
  const [passed, far] = duplexPair()
  rig.gateway.accept('port', far, '192.0.2.7', 'db-two 4000')
  passed.write(`AUTH ${CREDENTIALS.password}\r\nPING\r\n`)
  let answers = ''
  passed.setEncoding('latin1').on('data', (text: string) => (answers += text))
  await waitFor(() => answers === '+OK\r\n+PONG\r\n', { what: 'the answers' })
  holder.close()
  await once(holder, 'close')
  const isOpen = () =>
    rig.gateway.openDatabase('db-two').then(
      () => true,
      () => false,
    )
  await waitFor(isOpen, { what: 'the port to be opened' })
  await new RawClient(port).login()
  rig.gateway.disconnectClients('db-two')
  await once(passed, 'end')
  expect(answers).toBe('+OK\r\n+PONG\r\n')
})

it('the gateway ends REST requests of old credentials and addresses, also while another program holds the port', async () => {
  const holder = createServer().listen(0, '127.0.0.1')
  await once(holder, 'listening')
  const { port } = holder.address() as AddressInfo
  const held = { ...rig.database, port }
  rig.directory.put(held)
  await expect(rig.gateway.openDatabase('db-one')).rejects.toMatchObject({ code: 'port_taken' })
  for (const change of [{ loginEpoch: 1 }, { loginEpoch: 1, allowedIpRanges: ['192.0.2.1'] }]) {
    const headers = { authorization: `Bearer ${CREDENTIALS.token}` }
    const events = await fetch(`${rig.restUrl}/subscribe/news`, { headers })
    expect(events.status).toBe(200)
    rig.directory.put({ ...held, ...change })
    await events.text()
  }
  holder.close()
})

it('the gateway handles a change of one database without reading the others', async () => {
  const port = await freePort()
  rig.directory.put({ databaseId: 'db-held', port: rig.port, tls: false })
  await expect(rig.gateway.openDatabase('db-held')).rejects.toMatchObject({ code: 'port_taken' })
  const [list, find] = [vi.spyOn(rig.directory, 'list'), vi.spyOn(rig.directory, 'find')]
  rig.directory.put({ databaseId: 'db-two', port, tls: false })
  expect(find).not.toHaveBeenCalledWith('db-held')
  await rig.gateway.openDatabase('db-two')
  rig.directory.remove('db-two')
  expect(rig.gateway.usageOf('db-two')).toBeUndefined()
  expect(list).not.toHaveBeenCalled()
})

it('the gateway refuses connections above the limit of the database', async () => {
  const limited = await startRig({ maxClients: 2 })
  const [one, two] = [new RawClient(limited.port), new RawClient(limited.port)]
  await Promise.all([one.login(), two.login()])
  const third = new RawClient(limited.port)
  await third.expect('-ERR max concurrent connections exceeded\r\n')
  await third.expectClosed()
})

async function refuses(port: number): Promise<boolean> {
  const probe = new RawClient(port)
  await probe.expectClosed()
  return probe.received === ''
}
