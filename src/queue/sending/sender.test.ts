import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, it } from 'vitest'
import { systemClock, type TargetPolicy } from '../../base/index.js'
import { startSink } from '../testing/sink.js'
import { Sender } from './sender.js'

describe('a sender', () => {
  const send = async (url: string, policy: TargetPolicy) => {
    const sender = new Sender({ clock: systemClock, connectionsPerHost: 1, keepBytes: 0, targets: policy })
    const { outcome } = sender.send({ url, method: 'GET', headers: [], body: undefined, timeoutMs: 10_000 })
    return outcome.finally(() => sender.close())
  }

  it('contacts only the destinations that its policy allows', async () => {
    const sink = await startSink()
    const { port } = new URL(sink.url)
    const urls = [sink.url, `http://localhost:${port}/`, `http://2130706433:${port}/`]
    for (const url of urls) expect(await send(url, 'public')).toMatchObject({ kind: 'unanswered', isRefused: true })
    expect(sink.received).toHaveLength(0)
    for (const url of urls) expect(await send(url, 'everything')).toMatchObject({ kind: 'answered' })
    await sink.close()
  })

  it('stops reading an endless response, and uses its status', async () => {
    const flood = Buffer.alloc(2 ** 20)
    const closed = new Set<string>()
    const server = createServer((_request, response) => {
      response.writeHead(202)
      const pour = (): void => {
        while (!response.destroyed && response.write(flood)) {
          // until the socket is full
        }
      }
      response.on('drain', pour).on('close', () => closed.add('flood'))
      pour()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const outcome = await send(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, 'everything')
    expect(outcome).toMatchObject({ kind: 'answered', response: { status: 202, truncated: true } })
    await expect.poll(() => closed.has('flood')).toBe(true)
    server.close()
  })

  it('explains an https URL of a host without TLS', async () => {
    const sink = await startSink()
    const outcome = await send(sink.url.replace('http:', 'https:'), 'everything')
    const error =
      'the host speaks no TLS on this port, so the URL has to begin with http:// (ERR_SSL_WRONG_VERSION_NUMBER)'
    expect(outcome).toMatchObject({ kind: 'unanswered', error })
    await sink.close()
  })
})
