import { createServer as createPlainServer } from 'node:http'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { makeAuthority, makeServerCertificate } from '../../certificates/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { getSigningKeys } from '../../contract/queue/messages.js'
import { Api, orMissing, unreachable } from './api.js'

const errorOf = (url: string) => fetch(url).then(String, (cause: unknown) => unreachable(url, cause))

it('the error tells an untrusted certificate from an unreachable server', async () => {
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

it('the error says that the server went away in the middle of an answer', async () => {
  const server = createPlainServer((_, response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('{', () => response.destroy())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const queueUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const api = new Api({ origin: 'a test', profile: { queueUrl, queueToken: 'token' } })
  await expect(api.call(getSigningKeys)).rejects.toMatchObject({
    code: 'server_unreachable',
    message: expect.stringContaining(queueUrl),
  })
  await new Promise((resolve) => server.close(resolve))
})

const PROBLEM = 'There is no thing "x". See: homeport things list.'

const refused = (status: number): Promise<never> =>
  Promise.reject(new HomeportError('server_refused', { status, said: 'GET /v2/things lists them.' }))

it('the error names a command where the server would name a request', async () => {
  await expect(orMissing(refused(404), PROBLEM)).rejects.toMatchObject({ code: 'cli_not_found', message: PROBLEM })
})

it('other refusals and answers stay as they are', async () => {
  await expect(orMissing(refused(409), PROBLEM)).rejects.toMatchObject({ code: 'server_refused' })
  await expect(orMissing(Promise.reject(new TypeError('ours')), PROBLEM)).rejects.toThrow(TypeError)
  expect(await orMissing(Promise.resolve(7), PROBLEM)).toBe(7)
})
