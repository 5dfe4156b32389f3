import { readFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { Redis } from 'iovalkey'
import { expect, it } from 'vitest'
import { atCleanup, freePort, tempDir } from '../../../test/support/index.js'
import { CREDENTIALS, RawClient, startRig } from '../testing/rig.js'
import { authorityCertificatePath, localCertificate } from '../tls/local-authority.js'

it('serves a database over TLS to a client that trusts the authority', async () => {
  const dataDir = tempDir()
  const { certificate: cert, key } = await localCertificate({ dataDir, hostName: 'localhost', nowMs: Date.now() })
  const rig = await startRig({ tls: true }, { cert, key })
  const ca = await readFile(authorityCertificatePath(dataDir))
  const redis = new Redis({ host: 'localhost', port: rig.port, family: 4, password: CREDENTIALS.password, tls: { ca } })
  atCleanup(() => redis.disconnect())
  const value = Buffer.alloc(3_000_000, 'v')
  await redis.set('big', value)
  expect((await redis.getBuffer('big'))?.equals(value)).toBe(true)
  expect(await redis.multi().incr('n').incr('n').exec()).toEqual([
    [null, 1],
    [null, 2],
  ])
})

it('does not answer a client that speaks no TLS, and does not wait for it when it closes', async () => {
  const { certificate: cert, key } = await localCertificate({ dataDir: tempDir(), hostName: 'a', nowMs: Date.now() })
  const rig = await startRig({ tls: true }, { cert, key })
  const raw = new RawClient(rig.port).send(`AUTH ${CREDENTIALS.password}\r\n`)
  await raw.expectClosed()
  expect(raw.received).not.toContain('OK')
  const silent = createConnection({ port: rig.port, host: '127.0.0.1' })
  silent.on('error', () => {})
  await new Promise((resolve) => silent.once('connect', resolve))
  await rig.gateway.stop()
})

it('refuses to open a database with TLS while the server has no certificate', async () => {
  const rig = await startRig()
  rig.directory.put({ databaseId: 'db-tls', port: await freePort(), tls: true })
  await expect(rig.gateway.openDatabase('db-tls')).rejects.toMatchObject({ code: 'tls_not_configured' })
})
