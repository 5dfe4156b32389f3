import { connect as connectSocket, type Socket } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { startSink } from '../../src/queue/testing/sink.js'
import { waitFor } from '../support/index.js'
import { connect, createDatabase, useService } from './support/service.js'

/** A server that is asked to stop while clients of every kind are connected. */

const service = useService({ env: { HOMEPORT_SHUTDOWN_GRACE_MS: '500' } })

/** Opens a connection and sends an incomplete request. */
function halfRequest(port: number): Promise<Socket> {
  const socket = connectSocket(port, '127.0.0.1')
  socket.on('error', () => undefined)
  onTestFinished(() => void socket.destroy())
  const head = 'POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{'
  return new Promise((resolve) => socket.write(head, () => resolve(socket)))
}

it('ends with code 0, and pending deliveries are made after the next start', async () => {
  const { homeport, queue } = service
  const database = await createDatabase(service)
  const [blocked, subscriber] = [connect(database), connect(database)]
  await blocked.set('k', 'v')
  const popped = blocked.blpop('jobs', 0).catch((error: Error) => error.message)
  await subscriber.subscribe('news')
  const { apiPort, restPort, queuePort } = homeport.place
  const ports = [apiPort, restPort, queuePort, database.port]
  await Promise.all(ports.map(halfRequest))
  const sink = await startSink()
  onTestFinished(() => sink.close())
  sink.answer = () => (sink.received.length === 1 ? { silent: true } : {})
  const { messageId } = await queue.publish({ url: sink.url, body: 'x' })
  await waitFor(() => sink.received.length === 1, { what: 'the delivery to begin' })

  expect(await homeport.kill('SIGTERM')).toEqual({ code: 0, signal: null })
  expect(await popped).not.toBeInstanceOf(Array)
  expect(homeport.processes()).toEqual([])

  await service.restart('SIGTERM')
  await waitFor(() => sink.received.length === 2, { what: 'the delivery to come again' })
  expect(sink.received.map(({ headers }) => headers['upstash-message-id'])).toEqual([messageId, messageId])
  expect(await connect(database).get('k')).toBe('v')
})
