import { readFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { Duplex, duplexPair } from 'node:stream'
import { type ConnectionOptions, connect, type TLSSocket } from 'node:tls'
import { Redis } from 'iovalkey'
import { beforeAll, describe, expect, it } from 'vitest'
import { atCleanup, freePort, tempDir, waitFor } from '../../../test/support/index.js'
import { ConnectionLimiter } from '../../base/index.js'
import { ChangingCertificate, fixedCertificate, type KeyPair, makeAuthority } from '../../certificates/index.js'
import { makeClientCertificate } from '../testing/client-certificate.js'
import { CREDENTIALS, RawClient, type Rig, startRig } from '../testing/rig.js'
import { authorityCertificatePath, localCertificate } from '../tls/local-authority.js'

const DOMAIN = 'redis.example.test'
const TLS_REQUIRED =
  '-ERR This port accepts TLS only, and this connection began without TLS. Connect with TLS, for example with a rediss:// URL.\r\n'

let pair: KeyPair
let dataDir: string
let ca: string

beforeAll(async () => {
  dataDir = tempDir()
  pair = await localCertificate({ dataDir, hostNames: ['localhost', `*.${DOMAIN}`], nowMs: Date.now() })
  ca = await readFile(authorityCertificatePath(dataDir), 'utf8')
})

/** A bare TLS connection to the data plane. */
class TlsClient {
  readonly socket: TLSSocket
  received = ''
  error = ''
  isClosed = false

  constructor(options: ConnectionOptions) {
    this.socket = connect({ host: '127.0.0.1', servername: 'localhost', ca, ...options })
    this.socket.setEncoding('latin1')
    this.socket.on('data', (text) => (this.received += String(text)))
    this.socket.on('error', (error) => (this.error = error.message))
    this.socket.on('close', () => (this.isClosed = true))
    atCleanup(() => void this.socket.destroy())
  }

  async expect(expected: string): Promise<void> {
    await waitFor(() => this.received.includes('\n') || this.isClosed, { what: 'a reply over TLS' })
    expect(this.received).toBe(expected)
    this.received = ''
  }

  async expectRefused(): Promise<void> {
    await waitFor(() => this.isClosed, { what: 'the connection to be closed' })
    expect(this.received).toBe('')
  }

  async login(): Promise<this> {
    this.socket.write(`AUTH ${CREDENTIALS.password}\r\n`)
    await this.expect('+OK\r\n')
    return this
  }
}

describe('a database with TLS', () => {
  it('serves a client that trusts the authority', async () => {
    const rig = await startRig({ tls: true }, fixedCertificate(pair))
    const redis = new Redis({
      host: 'localhost',
      port: rig.port,
      family: 4,
      password: CREDENTIALS.password,
      tls: { ca },
    })
    atCleanup(() => redis.disconnect())
    const value = Buffer.alloc(3_000_000, 'v')
    await redis.set('big', value)
    expect((await redis.getBuffer('big'))?.equals(value)).toBe(true)
    expect(await redis.multi().incr('n').incr('n').exec()).toEqual([
      [null, 1],
      [null, 2],
    ])
  })

  it('sends an error in clear text to a client without TLS', async () => {
    const rig = await startRig({ tls: true }, fixedCertificate(pair))
    const raw = new RawClient(rig.port).send(`AUTH ${CREDENTIALS.password}\r\n`)
    await raw.expect(TLS_REQUIRED)
    await raw.expectClosed()
  })

  it('does not wait for a silent client when it closes', async () => {
    const rig = await startRig({ tls: true }, fixedCertificate(pair))
    const silent = createConnection({ port: rig.port, host: '127.0.0.1' })
    silent.on('error', () => {})
    await new Promise((resolve) => silent.once('connect', resolve))
    await rig.gateway.stop()
  })

  it('closes connections without a handshake or a login when there are too many, and no others', async () => {
    const connectionLimiter = new ConnectionLimiter({ most: 4 })
    const rig = await startRig({ tls: true }, fixedCertificate(pair), undefined, [], { connectionLimiter })
    const client = await new TlsClient({ port: rig.port }).login()
    const asked = await fetch(`${rig.restUrl}/ping`, { headers: { authorization: `Bearer ${CREDENTIALS.token}` } })
    expect([asked.status, connectionLimiter.size]).toEqual([200, 0])
    const secure = new TlsClient({ port: rig.port })
    await waitFor(() => secure.socket.authorized, { what: 'a handshake' })
    const silent = Array.from({ length: 3 }, () => new RawClient(rig.port))
    await waitFor(() => connectionLimiter.size === 4, { what: 'all of them to be accepted' })
    const overRest = Array.from({ length: 4 }, () => new RawClient(rig.gateway.restPort))
    await secure.expectRefused()
    for (const each of silent) await each.expectClosed()
    expect(connectionLimiter.size).toBe(4)
    client.socket.write('PING\r\n')
    await client.expect('+PONG\r\n')
    for (const each of overRest) each.socket.destroy()
    await waitFor(() => connectionLimiter.size === 0, { what: 'those that have left to be forgotten' })
    // While no other account needs files, this one may have twice its share of a quarter.
    for (let more = 0; more < 7; more++) await new TlsClient({ port: rig.port }).login()
    await new TlsClient({ port: rig.port }).expect('-ERR max concurrent connections exceeded\r\n')
    client.socket.write('PING\r\n')
    await client.expect('+PONG\r\n')
  })

  it('accepts a TLS hello that arrives in pieces', async () => {
    const rig = await startRig({ tls: true }, fixedCertificate(pair))
    const wire = createConnection({ port: rig.port, host: '127.0.0.1', noDelay: true })
    atCleanup(() => void wire.destroy())
    const byteByByte = new Duplex({
      read: () => {},
      write: (chunk: Buffer, _encoding, done) => {
        for (const byte of chunk) wire.write(Buffer.of(byte))
        done()
      },
    })
    wire.on('data', (chunk) => byteByByte.push(chunk))
    await new TlsClient({ socket: byteByByte }).login()
  })

  it('renegotiates with nobody, who could have it sign over and over on one connection', async () => {
    const certificates = new ChangingCertificate(pair)
    const rig = await startRig({ tls: true }, certificates)
    await new TlsClient({ port: rig.port }).login()
    certificates.change(pair)
    const client = await new TlsClient({ port: rig.port, maxVersion: 'TLSv1.2' }).login()
    client.socket.renegotiate({}, () => undefined)
    await waitFor(() => client.error !== '', { what: 'the refusal' })
    expect(client.error).toContain('no renegotiation')
  })

  it('presents a new certificate to new clients and keeps existing connections', async () => {
    const source = new ChangingCertificate(pair)
    const rig = await startRig({ tls: true }, source)
    const early = await new TlsClient({ port: rig.port }).login()
    const other = await localCertificate({ dataDir, hostNames: ['localhost', 'other.test'], nowMs: Date.now() })
    expect(source.change(other)).toBe(true)
    const late = await new TlsClient({ port: rig.port }).login()
    expect(late.socket.getPeerCertificate().subjectaltname).toContain('other.test')
    expect(early.socket.getPeerCertificate().subjectaltname).not.toContain('other.test')
    early.socket.write('SET a 1\r\n')
    await early.expect('+OK\r\n')
  })

  it('cannot be opened while the server has no certificate', async () => {
    const rig = await startRig()
    rig.directory.put({ databaseId: 'db-tls', port: await freePort(), tls: true })
    await expect(rig.gateway.openDatabase('db-tls')).rejects.toMatchObject({ code: 'tls_not_configured' })
  })
})

it('a clear-text port closes a connection that begins with TLS at once', async () => {
  const rig = await startRig()
  await new TlsClient({ port: rig.port }).expectRefused()
})

describe('a database that requires client certificates', () => {
  let authority: KeyPair
  let rig: Rig

  beforeAll(async () => {
    authority = await makeAuthority(Date.now())
    rig = await startRig({ tls: true, clientAuthority: authority.certificate }, fixedCertificate(pair))
  })

  it('serves a client with a certificate of the named authority', async () => {
    const { certificate: cert, key } = await makeClientCertificate(authority, 'app')
    await new TlsClient({ port: rig.port, cert, key }).login()
    const redis = new Redis({
      host: 'localhost',
      port: rig.port,
      family: 4,
      password: CREDENTIALS.password,
      tls: { ca, cert, key },
    })
    atCleanup(() => redis.disconnect())
    expect(await redis.ping()).toBe('PONG')
  })

  it('refuses a client without a certificate, or with one of another authority', async () => {
    await new TlsClient({ port: rig.port }).expectRefused()
    const { certificate: cert, key } = await makeClientCertificate(await makeAuthority(Date.now()), 'app')
    await new TlsClient({ port: rig.port, cert, key }).expectRefused()
  })

  it('disconnects clients that connected before it required one', async () => {
    const open = await startRig({ tls: true }, fixedCertificate(pair))
    const early = await new TlsClient({ port: open.port }).login()
    open.directory.put({ ...open.database, clientAuthority: authority.certificate })
    await waitFor(() => early.isClosed, { what: 'the early client to be disconnected' })
    await new TlsClient({ port: open.port }).expectRefused()
    const { certificate: cert, key } = await makeClientCertificate(authority, 'app')
    await new TlsClient({ port: open.port, cert, key }).login()
  })
})

describe('the shared port', () => {
  const nameOf = (slug: string): string => `${slug}.${DOMAIN}`
  const connectionLimiter = new ConnectionLimiter()
  let rig: Rig
  let port: number

  beforeAll(async () => {
    rig = await startRig({ tls: true, serverName: nameOf('one') }, fixedCertificate(pair), undefined, [], {
      domainPort: 0,
      connectionLimiter,
    })
    port = rig.gateway.domainPort ?? 0
    const elsewhere = { ...rig.database, databaseId: 'db-two', serverName: nameOf('two'), port: await freePort() }
    rig.directory.put({ ...elsewhere, allowedIpRanges: ['10.0.0.0/8'] })
    await rig.gateway.openDatabase('db-two')
  })

  it('connects to the database with the server name of the client, in any case', async () => {
    await new TlsClient({ port, servername: nameOf('one') }).login()
    await new TlsClient({ port, servername: nameOf('ONE') }).login()
    const refused = new TlsClient({ port, servername: nameOf('two') })
    await refused.expect(
      '-ERR address 127.0.0.1 is not in the allow list of this database. ' +
        'Its owner can add it: POST /v2/redis/update-allowlist/{id}.\r\n',
    )
  })

  it('counts a client that another node passes on as a stranger until it logs in', async () => {
    const { size } = connectionLimiter
    const [wire, far] = duplexPair()
    rig.gateway.accept('redis', far, '192.0.2.7', '4000')
    expect(connectionLimiter.size).toBe(size + 1)
    const client = new TlsClient({ socket: wire, servername: nameOf('one') })
    await waitFor(() => client.socket.authorized, { what: 'the handshake' })
    expect(connectionLimiter.size).toBe(size + 1)
    client.socket.write(`AUTH ${CREDENTIALS.password}\r\nCLIENT INFO\r\n`)
    await waitFor(() => client.received.includes(' addr=192.0.2.7:4000 '), { what: 'the address of the client' })
    expect(connectionLimiter.size).toBe(size)
  })

  it('keeps the own port of the database open', async () => {
    await new TlsClient({ port: rig.port }).login()
  })

  it('sends an error to a client with an unknown server name, or none', async () => {
    await new TlsClient({ port, servername: nameOf('three') }).expect(
      `-ERR No database has the host name "three.${DOMAIN}". ` +
        'Connect to the endpoint in the record of the database, with a TLS client that sends the server name (SNI).\r\n',
    )
    await new TlsClient({ port, servername: '', checkServerIdentity: () => undefined }).expect(
      '-ERR The TLS handshake had no server name. ' +
        'Connect to the endpoint in the record of the database, with a TLS client that sends the server name (SNI).\r\n',
    )
  })

  it('sends an error in clear text to a client without TLS', async () => {
    const raw = new RawClient(port).send('PING\r\n')
    await raw.expect(TLS_REQUIRED)
    await raw.expectClosed()
  })

  it('removes the name of a removed database, and disconnects its clients', async () => {
    const name = nameOf('gone')
    const gone = { databaseId: 'db-gone', port: await freePort(), tls: true, serverName: name }
    rig.directory.put(gone)
    await rig.gateway.openDatabase('db-gone')
    const client = await new TlsClient({ port, servername: name }).login()
    rig.directory.remove('db-gone')
    await waitFor(() => client.isClosed, { what: 'the client to be disconnected' })
    const late = new TlsClient({ port, servername: name })
    await waitFor(() => late.received.startsWith('-ERR No database has the host name'), {
      what: 'the name to be unknown',
    })
  })
})
