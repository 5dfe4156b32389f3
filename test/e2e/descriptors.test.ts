import { execFileSync } from 'node:child_process'
import { Agent, type IncomingMessage, request } from 'node:http'
import { expect, it, onTestFinished } from 'vitest'
import { startSink } from '../../src/queue/testing/sink.js'
import { basicOf, waitFor } from '../support/index.js'
import { useService } from './support/service.js'

/** A server without free file descriptors. */

const service = useService({})

/** Sets the maximum number of open files of a process. */
const limitFiles = (pid: number, most: number) =>
  execFileSync('prlimit', ['--pid', String(pid), `--nofile=${most}:`], { stdio: 'pipe' })

/** Calls the queue over one connection that stays open. */
function overOneConnection(url: string, token: string) {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  onTestFinished(() => agent.destroy())
  return (method: string, path: string, headers: Record<string, string> = {}): Promise<string> =>
    new Promise((resolve, reject) => {
      const options = { method, agent, headers: { authorization: `Bearer ${token}`, ...headers } }
      const sent = request(url + path, options, (response) => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (part) => (text += part))
        response.on('end', () => resolve(text))
      })
      sent.on('error', reject)
      sent.end()
    })
}

it.skipIf(process.platform !== 'linux')(
  'counts no attempt of a message while it cannot open a connection',
  async () => {
    const { pid, queueUrl, credentials, logs } = service.homeport
    const sink = await startSink()
    onTestFinished(() => sink.close())
    const call = overOneConnection(queueUrl, credentials.queueToken)
    await call('GET', '/v2/queues')

    // The limit does not close open files, so no further one can be opened.
    limitFiles(pid, 1)
    onTestFinished(() => void limitFiles(pid, 1_024))
    await call('POST', `/v2/publish/${sink.url}`, { 'upstash-retries': '0' })
    await waitFor(() => logs().includes('no file descriptor is left'), { what: 'the server to log the reason' })
    // The name cannot be looked up either.
    await call('POST', `/v2/publish/${sink.url.replace('127.0.0.1', 'localhost')}`, { 'upstash-retries': '0' })
    await waitFor(() => logs().split('no file descriptor is left').length > 4, { what: 'the server to try both again' })
    expect(await call('GET', '/v2/dlq')).toBe('{"messages":[]}')
    limitFiles(pid, 1_024)

    await waitFor(() => sink.received.length === 2, { what: 'the deliveries' })
    expect(sink.received.map(({ headers }) => headers['upstash-retried'])).toEqual(['0', '0'])
  },
)

it.skipIf(process.platform !== 'linux')(
  'the server refuses a creation temporarily, and leaves nothing of it',
  async () => {
    const { pid, apiUrl, credentials, api } = service.homeport
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    onTestFinished(() => agent.destroy())
    const login = basicOf(credentials.email, credentials.apiKey)
    const headers = { authorization: login, 'content-type': 'application/json' }
    const call = (method: string, path: string, body = ''): Promise<IncomingMessage> =>
      new Promise((resolve, reject) => {
        const sent = request(apiUrl + path, { method, agent, headers }, (response) => {
          response.resume()
          response.on('end', () => resolve(response))
        })
        sent.on('error', reject)
        sent.end(body)
      })
    await call('GET', '/v2/redis/databases')
    limitFiles(pid, 1)
    onTestFinished(() => void limitFiles(pid, 1_024))
    const fields = { database_name: 'shop', platform: 'aws', primary_region: 'us-east-1' }
    const refused = await call('POST', '/v2/redis/database', JSON.stringify(fields))
    expect([refused.statusCode, Number(refused.headers['retry-after'])]).toEqual([503, expect.any(Number)])
    limitFiles(pid, 1_024)
    await waitFor(async () => JSON.stringify((await api('GET', '/v2/redis/databases')).body) === '[]', {
      what: 'the creation to be undone',
    })
    expect(await api('POST', '/v2/redis/database', fields)).toMatchObject({ status: 200 })
  },
)
