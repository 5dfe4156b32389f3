// A test of an application under `node --test`, without a word about stopping the server: it ends with the process.
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { after, before, test } from 'node:test'
import { Client } from '@upstash/qstash'
import { startHomeport } from 'homeport/testing'

const received = []
const server = createServer(async (request, response) => {
  for await (const chunk of request) received.push(String(chunk))
  response.end()
})
let homeport

before(async () => {
  homeport = await startHomeport()
  Object.assign(process.env, homeport.env)
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
})
after(() => server.close())

test('the mail goes out tomorrow', async () => {
  const url = `http://127.0.0.1:${server.address().port}`
  await new Client().publishJSON({ url, body: { to: 'Ada' }, delay: '1d' })
  await homeport.advanceTime(86_400_000)
  const [mail] = await homeport.deliveries({ count: 1 })
  assert.equal(mail.status, 200)
  assert.deepEqual(received, ['{"to":"Ada"}'])
})
