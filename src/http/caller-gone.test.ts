import { connect } from 'node:net'
import Type from 'typebox'
import { it } from 'vitest'
import { waitFor } from '../../test/support/wait-for.js'
import { endpoint } from '../contract/endpoint.js'
import { route } from './index.js'
import { listener } from './testing/listener.js'

const patience = endpoint({
  id: 'patience',
  service: 'queue',
  topic: 'Server',
  path: '/v2/patience',
  errors: [],
  summary: 'Wait',
  description: 'Waits until its caller is gone.',
  method: 'GET',
  auth: 'none',
  access: 'read',
  body: { kind: 'none' },
  success: { status: 200, description: 'never', body: Type.Any() },
})

it('the signal of a call is aborted when its caller disconnects, also for a pipelined request', async () => {
  let waiting = 0
  const handler = route(patience, ({ signal }) => {
    waiting++
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve({ waiting: --waiting })))
  })
  const server = listener({
    routes: [handler],
  })
  await server.start()
  const request = 'GET /v2/patience HTTP/1.1\r\nHost: x\r\n\r\n'
  const socket = connect(server.port, '127.0.0.1', () => socket.write(request.repeat(2)))
  await waitFor(() => waiting === 2, { what: 'both requests' })
  socket.destroy()
  await waitFor(() => waiting === 0, { what: 'both signals to be aborted' })
  await server.stop()
})
