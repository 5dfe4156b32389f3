// A welcome mail three days after the sign-up, with Express. See README.md.
import { Client, Receiver } from '@upstash/qstash'
import { Redis } from '@upstash/redis'
import { Client as WorkflowClient } from '@upstash/workflow'
import { serve } from '@upstash/workflow/express'
import express from 'express'

const port = Number(process.env.PORT ?? 3000)
const url = process.env.APP_URL ?? `http://localhost:${port}`
const redis = Redis.fromEnv()
const queue = new Client()
const workflows = new WorkflowClient()
const receiver = new Receiver({
  currentSigningKey: process.env.QSTASH_CURRENT_SIGNING_KEY,
  nextSigningKey: process.env.QSTASH_NEXT_SIGNING_KEY,
})

const app = express()

// The signature is over the bytes that were sent, so this route reads the body as text.
app.post('/mail', express.text({ type: '*/*' }), async (request, response) => {
  const signature = request.get('upstash-signature') ?? ''
  const isGenuine = await receiver.verify({ signature, body: request.body }).catch(() => false)
  if (!isGenuine) return response.status(401).send('wrong signature')
  await redis.rpush('sent', JSON.parse(request.body).to)
  response.send('sent')
})

app.use(express.json())

app.post('/signup', async (request, response) => {
  const { email } = request.body
  response.json(await workflows.trigger({ url: `${url}/welcome`, body: { email } }))
})

app.use(
  '/welcome',
  serve(async (context) => {
    const { email } = context.requestPayload
    await context.run('store user', () => redis.sadd('users', email))
    await context.sleep('three days', '3d')
    await context.run('send mail', () => queue.publishJSON({ url: `${url}/mail`, body: { to: email } }))
  }),
)

app.get('/sent', async (_, response) => response.json(await redis.lrange('sent', 0, -1)))

app.listen(port, '127.0.0.1', () => console.log(`serving on ${url}`))
