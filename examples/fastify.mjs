// A welcome mail three days after the sign-up, with Fastify. See README.md.
import { Client, Receiver } from '@upstash/qstash'
import { Redis } from '@upstash/redis'
import { serve, Client as WorkflowClient } from '@upstash/workflow'
import Fastify from 'fastify'

const port = Number(process.env.PORT ?? 3000)
const url = process.env.APP_URL ?? `http://localhost:${port}`
const redis = Redis.fromEnv()
const queue = new Client()
const workflows = new WorkflowClient()
const receiver = new Receiver({
  currentSigningKey: process.env.QSTASH_CURRENT_SIGNING_KEY,
  nextSigningKey: process.env.QSTASH_NEXT_SIGNING_KEY,
})

const app = Fastify()
// Signatures are over the bytes that were sent, so bodies stay text until a route parses them.
app.removeAllContentTypeParsers()
app.addContentTypeParser('*', { parseAs: 'string' }, (_, body, done) => done(null, body))

app.post('/signup', async (request) => {
  const { email } = JSON.parse(request.body)
  return await workflows.trigger({ url: `${url}/welcome`, body: { email } })
})

const { handler } = serve(async (context) => {
  const { email } = context.requestPayload
  await context.run('store user', () => redis.sadd('users', email))
  await context.sleep('three days', '3d')
  await context.run('send mail', () => queue.publishJSON({ url: `${url}/mail`, body: { to: email } }))
})

// The workflow package has no adapter for Fastify; its handler takes a Request and answers a Response.
app.post('/welcome', async ({ headers, body = '' }, reply) => {
  const response = await handler(new Request(`${url}/welcome`, { method: 'POST', headers, body }))
  reply.code(response.status).headers(Object.fromEntries(response.headers))
  return await response.text()
})

app.post('/mail', async (request, reply) => {
  const { body } = request
  const signature = request.headers['upstash-signature'] ?? ''
  if (!(await receiver.verify({ signature, body }).catch(() => false))) return reply.code(401).send('wrong signature')
  await redis.rpush('sent', JSON.parse(body).to)
  return 'sent'
})

app.get('/sent', () => redis.lrange('sent', 0, -1))

await app.listen({ port, host: '127.0.0.1' })
console.log(`serving on ${url}`)
