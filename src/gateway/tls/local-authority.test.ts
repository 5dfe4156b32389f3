import { mkdtemp, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect, createServer, type PeerCertificate } from 'node:tls'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { authorityCertificatePath, localCertificate } from './local-authority.js'

const DAY_MS = 86_400_000
const now = Date.now()
let dataDir: string
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'homeport-tls-'))
})
afterEach(() => rm(dataDir, { recursive: true }))

/** Serves with the certificate, and connects as a client that only trusts the authority. */
async function handshake(host: string): Promise<PeerCertificate> {
  const { certificate, key } = await localCertificate({ dataDir, hostNames: ['data.example.test'], nowMs: now })
  const ca = await readFile(authorityCertificatePath(dataDir), 'utf8')
  const server = createServer({ cert: certificate, key }, (socket) => socket.end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  try {
    return await new Promise<PeerCertificate>((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port, ca, servername: host }, () => {
        resolve(socket.getPeerCertificate())
        socket.end()
      })
      socket.on('error', reject)
    })
  } finally {
    await new Promise((resolve) => server.close(resolve))
  }
}

describe('the local authority', () => {
  it.each(['localhost', 'data.example.test'])('vouches for %s', async (host) => {
    expect((await handshake(host)).subject.CN).toBe('Homeport')
  })

  it('does not vouch for other names', async () => {
    await expect(handshake('elsewhere.test')).rejects.toThrow(/does not match/)
  })

  it.each([
    ['at 1970, as machines without a battery have it', 10_000],
    ['30 years ahead', now + 30 * 365 * DAY_MS],
  ])('is trusted for long after a first start with the clock %s', async (_what, nowMs) => {
    await localCertificate({ dataDir, hostNames: ['data.example.test'], nowMs })
    expect((await handshake('localhost')).subject.CN).toBe('Homeport')
  })

  it('is reported when it has expired, and still signs', async () => {
    await localCertificate({ dataDir, hostNames: ['a'], nowMs: now })
    const problems: Error[] = []
    const options = { dataDir, hostNames: ['a'], nowMs: now + 20 * 365 * DAY_MS }
    const later = await localCertificate({ ...options, onProblem: (error) => void problems.push(error) })
    expect(problems).toMatchObject([{ code: 'tls_authority_unusable', details: { file: 'ca.crt' } }])
    expect(problems[0]?.message).toMatch(/it expired on 20\d\d-\d\d-\d\d\./)
    expect(await localCertificate(options)).toEqual(later)
  })

  it('keeps its files private and creates them once', async () => {
    const first = await localCertificate({ dataDir, hostNames: ['a'], nowMs: now })
    expect(await localCertificate({ dataDir, hostNames: ['a'], nowMs: now })).toEqual(first)
    for (const file of ['ca.key', 'ca.crt', 'server.key', 'server.crt']) {
      expect((await stat(join(dataDir, 'tls', file))).mode & 0o777).toBe(0o600)
    }
  })

  it('renews the certificate before it expires or when the host names change, but never the authority', async () => {
    const first = await localCertificate({ dataDir, hostNames: ['a'], nowMs: now })
    const authority = await readFile(authorityCertificatePath(dataDir), 'utf8')
    const other = await localCertificate({ dataDir, hostNames: ['b'], nowMs: now })
    const later = await localCertificate({ dataDir, hostNames: ['b'], nowMs: now + 380 * DAY_MS })
    expect(new Set([first, other, later].map((pair) => pair.certificate)).size).toBe(3)
    expect(await readFile(authorityCertificatePath(dataDir), 'utf8')).toBe(authority)
  })

  const filesNow = () =>
    Promise.all(['ca.key', 'ca.crt'].map((file) => readFile(join(dataDir, 'tls', file), 'utf8').catch(() => 'none')))

  it.each([
    ['ca.key is missing', (tls: string) => rm(join(tls, 'ca.key')), 'ca.key', 'it is missing'],
    ['ca.crt is missing', (tls: string) => rm(join(tls, 'ca.crt')), 'ca.crt', 'it is missing'],
    ['ca.key is cut', (tls: string) => truncate(join(tls, 'ca.key'), 40), 'ca.key', 'it is damaged'],
    ['ca.crt is no certificate', (tls: string) => writeFile(join(tls, 'ca.crt'), 'x'), 'ca.crt', 'it is damaged'],
  ])(
    'is not replaced when %s: its certificates stay valid, and the error names the file',
    async (_what, spoil, file, problem) => {
      const options = { dataDir, hostNames: ['a'], nowMs: now }
      const first = await localCertificate(options)
      await spoil(join(dataDir, 'tls'))
      const before = await filesNow()
      const problems: Error[] = []
      expect(await localCertificate({ ...options, onProblem: (error) => void problems.push(error) })).toEqual(first)
      expect(problems).toMatchObject([{ code: 'tls_authority_unusable', details: { file, problem } }])
      await expect(localCertificate({ ...options, hostNames: ['other'] })).rejects.toMatchObject({ details: { file } })
      expect(await filesNow()).toEqual(before)
    },
  )

  it('is created again when its creation was cut off before a client could trust it', async () => {
    await localCertificate({ dataDir, hostNames: ['a'], nowMs: now })
    for (const file of ['ca.crt', 'server.key', 'server.crt']) await rm(join(dataDir, 'tls', file))
    await localCertificate({ dataDir, hostNames: ['a'], nowMs: now })
    expect((await filesNow())[1]).toContain('CERTIFICATE')
  })

  it('creates the server certificate again when it is damaged', async () => {
    await localCertificate({ dataDir, hostNames: ['a'], nowMs: now })
    const [, authority] = await filesNow()
    await writeFile(join(dataDir, 'tls', 'server.key'), 'x')
    expect((await localCertificate({ dataDir, hostNames: ['a'], nowMs: now })).key).toContain('PRIVATE KEY')
    expect((await filesNow())[1]).toBe(authority)
  })
})
