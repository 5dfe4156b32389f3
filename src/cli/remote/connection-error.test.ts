import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { makeAuthority, makeServerCertificate } from '../../gateway/tls/certificates.js'
import { connectionError } from './connection-error.js'

const errorOf = (url: string) => fetch(url).then(String, (cause: unknown) => unreachable(url, cause))

it('tells an untrusted certificate from an unreachable server', async () => {
  const now = Date.now()
  const { certificate: cert, key } = await makeServerCertificate(await makeAuthority(now), ['127.0.0.1'], now)
  const server = createServer({ cert, key })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `https://127.0.0.1:${(server.address() as AddressInfo).port}`
  expect(await errorOf(url)).toMatchObject({
    code: 'server_untrusted',
    message: expect.stringContaining('NODE_EXTRA_CA'),
  })
  await new Promise((resolve) => server.close(resolve))
  expect(await errorOf(url)).toMatchObject({ code: 'server_unreachable' })
})
