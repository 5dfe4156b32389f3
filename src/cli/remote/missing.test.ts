import { expect, it } from 'vitest'
import { HomeportError } from '../../contract/errors/errors.js'
import { orMissing } from './missing.js'

const PROBLEM = 'There is no thing "x". See: homeport things list.'

const refused = (status: number): Promise<never> =>
  Promise.reject(new HomeportError('server_refused', { status, said: 'GET /v2/things lists them.' }))

it('names a command where the server would name a request', async () => {
  await expect(orMissing(refused(404), PROBLEM)).rejects.toMatchObject({ code: 'cli_not_found', message: PROBLEM })
})

it('leaves every other refusal, and every answer, as it is', async () => {
  await expect(orMissing(refused(409), PROBLEM)).rejects.toMatchObject({ code: 'server_refused' })
  await expect(orMissing(Promise.reject(new TypeError('ours')), PROBLEM)).rejects.toThrow(TypeError)
  expect(await orMissing(Promise.resolve(7), PROBLEM)).toBe(7)
})
