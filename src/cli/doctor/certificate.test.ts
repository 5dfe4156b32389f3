import { X509Certificate } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, it } from 'vitest'
import { tempDir } from '../../../test/support/index.js'
import { makeAuthority } from '../../certificates/index.js'
import { loadConfig } from '../../config/index.js'
import { authorityCertificatePath } from '../../gateway/index.js'
import { checkCertificate, judgeExpiry } from './certificate.js'

const NOW = Date.parse('2026-06-01T00:00:00Z')

it.each([
  ['fail', 'May 31 00:00:00 2026 GMT', 'expired on 2026-05-31'],
  ['warn', 'Jun 20 00:00:00 2026 GMT', 'valid until 2026-06-20'],
  ['ok', 'Dec 31 00:00:00 2026 GMT', 'valid until 2026-12-31'],
])('the doctor reports %s for a certificate that expires on %s', (status, validTo, found) => {
  expect(judgeExpiry({ validTo }, NOW)).toMatchObject({ status, found: expect.stringContaining(found) })
})

it('the doctor fails when the files of the operator cannot be used', async () => {
  const directory = tempDir()
  const files = { tlsCertFile: join(directory, 'a.crt'), tlsKeyFile: join(directory, 'a.key') }
  const finding = await checkCertificate(loadConfig({ flags: { dataDir: directory, ...files } }), NOW)
  expect(finding).toMatchObject({ status: 'fail', found: expect.stringContaining('ENOENT') })
})

it('the doctor accepts that the local authority does not exist yet', async () => {
  const config = loadConfig({ flags: { dataDir: tempDir() } })
  expect(await checkCertificate(config, NOW)).toMatchObject({ status: 'ok' })
})

it.each([
  ['fail', -1, 'expired on'],
  ['warn', 100, 'is valid until'],
  ['ok', 200, 'creates it'],
])('the doctor reports %s for a local authority that is valid for %d more days', async (status, days, found) => {
  const dataDir = tempDir()
  const authority = await makeAuthority(NOW)
  const path = authorityCertificatePath(dataDir)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, authority.certificate)
  const until = Date.parse(new X509Certificate(authority.certificate).validTo)
  const finding = await checkCertificate(loadConfig({ flags: { dataDir } }), until - days * 86_400_000)
  expect(finding).toMatchObject({ status, found: expect.stringContaining(found) })
})
