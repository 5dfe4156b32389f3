// A welcome mail three days after the sign-up, with Hono. See README.md.
import { serve as listen } from '@hono/node-server'
import { Client, Receiver } from '@upstash/qstash'
import { Redis } from '@upstash/redis'
import { Client as WorkflowClient } from '@upstash/workflow'
import { serve } from '@upstash/workflow/hono'
import { Hono } from 'hono'

const port = Number(process.env.PORT ?? 3000)
const url = process.env.APP_URL ?? `http://localhost:${port}`
const redis = Redis.fromEnv()
const queue = new Client()
const workflows = new WorkflowClient()
const receiver = new Receiver({
  currentSigningKey: process.env.QSTASH_CURRENT_SIGNING_KEY,
  nextSigningKey: process.env.QSTASH_NEXT_SIGNING_KEY,
})

const app = new Hono()

app.post('/signup', async (c) => {
  const { email } = await c.req.json()
  return c.json(await workflows.trigger({ url: `${url}/welcome`, body: { email } }))
})

app.post(
  '/welcome',
  serve(async (context) => {
    const { email } = context.requestPayload
    await context.run('store user', () => redis.sadd('users', email))
    await context.sleep('three days', '3d')
    await context.run('send mail', () => queue.publishJSON({ url: `${url}/mail`, body: { to: email } }))
  }),
)

app.post('/mail', async (c) => {
  const body = await c.req.text()
  const signature = c.req.header('upstash-signature') ?? ''
  if (!(await receiver.verify({ signature, body }).catch(() => false))) return c.text('wrong signature', 401)
  await redis.rpush('sent', JSON.parse(body).to)
  return c.text('sent')
})

app.get('/sent', async (c) => c.json(await redis.lrange('sent', 0, -1)))

listen({ fetch: app.fetch, port, hostname: '127.0.0.1' }, () => console.log(`serving on ${url}`))
