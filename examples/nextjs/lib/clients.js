// The clients of a welcome mail three days after the sign-up, with Next.js. See ../../README.md.
import { Client } from '@upstash/qstash'
import { Redis } from '@upstash/redis'
import { Client as WorkflowClient } from '@upstash/workflow'

// Made at the first request: while the application is built, no server needs to be there.
let made

export function clients() {
  const port = process.env.PORT ?? 3000
  made ??= {
    url: process.env.APP_URL ?? `http://localhost:${port}`,
    redis: Redis.fromEnv(),
    queue: new Client(),
    workflows: new WorkflowClient(),
  }
  return made
}
