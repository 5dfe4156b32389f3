import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'iovalkey'
import { expect, it, onTestFinished } from 'vitest'
import { startHomeport } from '../support/index.js'

it('a server whose authority is broken names the file, and serves databases without TLS', async () => {
  const first = await startHomeport()
  await first.kill('SIGTERM')
  const tls = join(first.place.dataDir, 'tls')
  writeFileSync(join(tls, 'ca.key'), 'no key')
  for (const file of ['server.key', 'server.crt']) rmSync(join(tls, file))
  const homeport = await startHomeport(first.place)
  const fields = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }
  const refused = await homeport.api('POST', '/v2/redis/database', { ...fields, tls: true })
  expect(refused).toMatchObject({ status: 412 })
  const { status, body } = await homeport.api('POST', '/v2/redis/database', { ...fields, tls: false })
  expect(status).toBe(200)
  const { port, password } = body as { port: number; password: string }
  const client = new Redis({ host: '127.0.0.1', port, password })
  onTestFinished(() => client.disconnect())
  expect(await client.set('k', 'v')).toBe('OK')
  expect(homeport.logs()).toContain('The local certificate authority cannot be used (tls/ca.key): it is damaged.')
})
