import { clients } from '../../lib/clients.js'

export const dynamic = 'force-dynamic'

export const GET = async () => Response.json(await clients().redis.lrange('sent', 0, -1))
