import { X509Certificate } from 'node:crypto'
import { renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect, type TLSSocket } from 'node:tls'
import { Redis } from 'iovalkey'
import { beforeAll, expect, it } from 'vitest'
import { type KeyPair, makeAuthority, makeServerCertificate } from '../../src/certificates/index.js'
import { makeClientCertificate } from '../../src/gateway/testing/client-certificate.js'
import { atCleanup, freePort, type RunningHomeport, startHomeport, tempDir, waitFor } from '../support/index.js'

/** A server with a domain, a certificate of the operator's own, and a read region that it serves. */

interface Made {
  readonly database_id: string
  readonly endpoint: string
  readonly port: number
  readonly tls: boolean
  readonly password: string
  readonly rest_token: string
  readonly rest_url: string
  readonly securityAddons: { readonly tlsMutualAuth: boolean }
}

const DOMAIN = 'redis.example.test'
let homeport: RunningHomeport
let authority: KeyPair
let database: Made
let files: { certificate: string; key: string }

async function showCertificate(): Promise<KeyPair> {
  const pair = await makeServerCertificate(authority, [`*.${DOMAIN}`], Date.now())
  writeFileSync(`${files.key}.new`, pair.key, { mode: 0o600 })
  writeFileSync(`${files.certificate}.new`, pair.certificate)
  renameSync(`${files.key}.new`, files.key)
  renameSync(`${files.certificate}.new`, files.certificate)
  return pair
}

async function create(more: object = {}): Promise<Made> {
  const body = { database_name: 'd', platform: 'aws', primary_region: 'us-east-1', ...more }
  const { status, body: made } = await homeport.api('POST', '/v2/redis/database', body)
  expect(status).toBe(200)
  return made as Made
}

/** Connects like a client whose name service resolves `endpoint`. */
function open(shown: Partial<KeyPair> = {}): TLSSocket {
  const { certificate: cert, key } = shown
  const { endpoint: servername, port } = database
  const socket = connect({ host: '127.0.0.1', port, servername, ca: authority.certificate, cert, key })
  socket.on('error', () => {})
  atCleanup(() => void socket.destroy())
  return socket
}

async function isServed(socket: TLSSocket): Promise<boolean> {
  let received = ''
  let isClosed = false
  socket.on('data', (chunk) => (received += String(chunk)))
  socket.on('close', () => (isClosed = true))
  socket.write('PING\r\n')
  await waitFor(() => received.includes('\n') || isClosed, { what: 'an answer or the end of the connection' })
  return received.startsWith('-NOAUTH')
}

beforeAll(async () => {
  const directory = tempDir()
  files = { certificate: join(directory, 'own.crt'), key: join(directory, 'own.key') }
  authority = await makeAuthority(Date.now())
  await showCertificate()
  const args = [
    ...['--redis-domain', DOMAIN, '--redis-domain-port', `${await freePort()}`, '--region', 'eu-west-1'],
    ...['--tls-cert-file', files.certificate, '--tls-key-file', files.key],
  ]
  homeport = await startHomeport({ args })
  database = await create({ read_regions: ['eu-west-1'] })
})

it('a database with TLS has its own host name, and one without TLS is known by its port', async () => {
  expect(database).toMatchObject({
    tls: true,
    endpoint: expect.stringMatching(/^[a-z]+-[a-z]+-\d+\.redis\.example\.test$/),
  })
  const clear = await create({ tls: false })
  expect(clear).toMatchObject({ tls: false, endpoint: 'localhost' })
  expect(clear.port).not.toBe(database.port)
})

it('the console may send requests to it over REST, also from its pages', async () => {
  const { body: settings } = await homeport.api('GET', '/v2/console/settings')
  expect(settings).toMatchObject({ redis_host: DOMAIN, rest_url: database.rest_url })
  const page = await fetch(homeport.apiUrl, { headers: { accept: 'text/html' } })
  expect(page.headers.get('content-security-policy')).toContain(
    `connect-src 'self' ${new URL(database.rest_url).origin};`,
  )
  const headers = { authorization: `Bearer ${database.rest_token}`, origin: homeport.apiUrl }
  const answer = await fetch(`${homeport.restUrl}/ping`, { headers })
  expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, '*'])
})

it('the database is served under its name, with reads from the replica of the region', async () => {
  const { endpoint: servername, port, password } = database
  const tls = { servername, ca: authority.certificate }
  const redis = new Redis({ host: '127.0.0.1', port, password, tls })
  atCleanup(() => redis.disconnect())
  const headers = { authorization: `Bearer ${database.rest_token}` }
  for (let count = 1; count <= 50; count++) {
    await redis.set('n', count)
    expect(await redis.get('n')).toBe(`${count}`)
    expect(await (await fetch(`${homeport.restUrl}/get/n`, { headers })).json()).toEqual({ result: `${count}` })
  }
  redis.disconnect()
})

it('new clients get a certificate that was replaced, and connected clients stay connected', async () => {
  const early = open()
  expect(await isServed(early)).toBe(true)
  const { certificate } = await showCertificate()
  const { serialNumber } = new X509Certificate(certificate)
  await waitFor(
    async () => {
      const late = open()
      await isServed(late)
      return late.getPeerCertificate().serialNumber === serialNumber
    },
    { what: 'the new certificate to be shown' },
  )
  expect(await isServed(early)).toBe(true)
})

it('a database requires client certificates once its owner has set their authority', async () => {
  const path = `/v2/redis/${database.database_id}/mutual-tls`
  const refused = await homeport.api('POST', path, { client_ca: (await showCertificate()).certificate })
  expect([refused.status, refused.body]).toEqual([
    400,
    { error: expect.stringContaining('is not a certificate authority') },
  ])
  const clients = await makeAuthority(Date.now())
  const on = await homeport.api('POST', path, { client_ca: clients.certificate })
  expect(on).toMatchObject({ status: 200, body: { securityAddons: { tlsMutualAuth: true } } })
  expect(await isServed(open())).toBe(false)
  expect(await isServed(open(await makeClientCertificate(authority, 'stranger')))).toBe(false)
  expect(await isServed(open(await makeClientCertificate(clients, 'app')))).toBe(true)
  const off = await homeport.api('POST', path, { client_ca: null })
  expect(off).toMatchObject({ status: 200, body: { securityAddons: { tlsMutualAuth: false } } })
  expect(await isServed(open())).toBe(true)
})

it('a database without TLS cannot require client certificates', async () => {
  const { database_id } = await create({ tls: false })
  const path = `/v2/redis/${database_id}/mutual-tls`
  const { status, body } = await homeport.api('POST', path, {
    client_ca: (await makeAuthority(Date.now())).certificate,
  })
  expect([status, body]).toEqual([409, { error: expect.stringContaining('enable-tls') }])
})
