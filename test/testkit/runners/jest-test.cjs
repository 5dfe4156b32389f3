// The same under Jest, in its own module format, with timers that the test has replaced.
const { createServer } = require('node:http')
const { Client } = require('@upstash/qstash')
const { startHomeport } = require('homeport/testing')

let homeport
let server
const received = []

beforeAll(async () => {
  homeport = await startHomeport()
  server = createServer(async (request, response) => {
    for await (const chunk of request) received.push(String(chunk))
    response.end()
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
}, 60_000)
afterAll(async () => {
  server?.close()
  await homeport?.stop()
})

test('the mail goes out tomorrow', async () => {
  jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] })
  const client = new Client({ baseUrl: homeport.env.QSTASH_URL, token: homeport.env.QSTASH_TOKEN })
  const url = `http://127.0.0.1:${server.address().port}`
  await client.publishJSON({ url, body: { to: 'Ada' }, delay: '1d' })
  await homeport.advanceTime(86_400_000)
  const [mail] = await homeport.deliveries({ count: 1 })
  expect(mail.status).toBe(200)
  expect(received).toEqual(['{"to":"Ada"}'])
})
