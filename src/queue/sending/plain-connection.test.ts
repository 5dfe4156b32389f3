import { describe, expect, it, vi } from 'vitest'
import { waitFor } from '../../../test/support/index.js'
import { KEPT, newClient, OK, received, Sent, startDestination } from './testing/scripted-destination.js'

describe('a plain request that is ended', () => {
  it.each([
    ['before the response', ''],
    ['within the head', 'HTTP/1.1 200'],
    ['within the body', 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok'],
    ['within a response that undici reads', 'HTTP/1.1 200 OK\r\n\r\nok'],
  ])('%s ends its connection, and gets no other event', async (_when, answer) => {
    const destination = await startDestination()
    const { client } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    await new Promise((resolve) => socket.write(answer, resolve))
    if (answer.includes('ok')) await waitFor(() => sent.body === 'ok', { what: 'the body' })
    sent.controller?.abort(new Error('no longer wanted'))
    expect((await sent.ended()).at(-1)).toBe('no longer wanted')
    await waitFor(() => socket.readableEnded || socket.destroyed, { what: 'the end of the connection' })
    expect(sent.heard.filter((text) => text === 'no longer wanted')).toHaveLength(1)
  })

  it('as soon as it begins is not written', async () => {
    const destination = await startDestination()
    const { client } = newClient()
    const start = vi.spyOn(Sent.prototype, 'onRequestStart').mockImplementation((controller) => {
      controller.abort(new Error('too late'))
    })
    const sent = new Sent(client, destination.origin)
    expect(await sent.ended()).toEqual(['too late'])
    start.mockRestore()
    await waitFor(() => destination.arrivals[0]?.socket.readableEnded, { what: 'the end of the connection' })
    expect(destination.arrivals[0]?.text).toBe('')
  })

  it('by the end of the client fails, wherever it is', async () => {
    const destination = await startDestination()
    const { client } = newClient()
    const asking = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    const connecting = new Sent(client, destination.origin)
    client.close()
    expect(await connecting.ended()).toEqual(['The client is destroyed'])
    expect(await asking.ended()).toEqual(['start', 'The client is destroyed'])
    await waitFor(() => socket.readableEnded || socket.destroyed, { what: 'the end of the connection' })
    expect(client.takes(asking.request)).toBe(false)
  })
})

describe('a connection that waits', () => {
  /** A client whose connection has answered once. */
  async function waiting(answer = OK) {
    const destination = await startDestination()
    const { client, clock } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    socket.write(answer)
    await sent.ended()
    return { destination, client, clock, socket, sent }
  }

  it('ends after four seconds, or two seconds before the destination would end it', async () => {
    for (const [answer, seconds] of [
      [OK, 4],
      [KEPT, 6],
    ] as const) {
      const { clock, socket } = await waiting(answer)
      clock.advance((seconds - 1) * 1_000)
      expect(socket.readableEnded).toBe(false)
      clock.advance(1_000)
      await waitFor(() => socket.readableEnded, { what: 'the end of the connection' })
      clock.advance(1_000)
      expect(clock.pendingTimers).toBe(0)
    }
  })

  it('is not reused for a moment, so that the next request sees whether the destination has closed it', async () => {
    const destination = await startDestination()
    const { client } = newClient()
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    const next = new Promise<Sent>((resolve) => {
      sent.onResponseEnd = () => resolve(new Sent(client, destination.origin))
    })
    socket.end(OK)
    expect((await next).request.connection).toBeUndefined()
    const second = await received(destination, 2)
    second.socket.write(OK)
    expect(await (await next).ended()).toEqual(['start', '200', 'end'])
  })

  it('is reused as soon as possible where no other connection is allowed', async () => {
    const destination = await startDestination()
    const { client } = newClient(1)
    const sent = new Sent(client, destination.origin)
    const { socket } = await received(destination, 1)
    const next = new Promise<Sent>((resolve) => {
      sent.onResponseEnd = () => resolve(new Sent(client, destination.origin))
    })
    socket.write(OK)
    expect((await next).request.connection).toBe(sent.request.connection)
    await received(destination, 1, 2)
    socket.end(OK)
    expect(await (await next).ended()).toEqual(['start', '200', 'end'])
  })

  it('is not reused after a pause of this process, during which the destination may have closed it', async () => {
    const { destination, client, clock } = await waiting()
    const now = clock.now() + 3_000
    vi.spyOn(clock, 'now').mockReturnValue(now)
    const next = new Sent(client, destination.origin)
    const second = await received(destination, 2)
    second.socket.write(OK)
    expect(await next.ended()).toEqual(['start', '200', 'end'])
  })

  it('ends when bytes arrive without a request', async () => {
    const { socket } = await waiting()
    socket.write(OK)
    await waitFor(() => socket.readableEnded, { what: 'the end of the connection' })
  })

  it('that was closed fails the next request with an error that allows a repetition', async () => {
    const { destination, client, socket, sent } = await waiting()
    const next = new Sent(client, destination.origin)
    await received(destination, 1, 2)
    expect(next.request.connection).toBe(sent.request.connection)
    socket.resetAndDestroy()
    await next.ended()
    const reset = Object.assign(new Error('reset'), { code: 'ECONNRESET' })
    expect(next.request.connection?.wasClosedWhileReused(reset, true)).toBe(true)
  })
})
