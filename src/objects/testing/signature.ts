import { createHash, createHmac } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

/** What is wrong with the signature of a request; `undefined`: nothing. Written from the rules of AWS Signature 4. */
export function signatureProblem(request: IncomingMessage, body: Buffer, secret: string): string | undefined {
  const { headers, method = '', url = '' } = request
  const [, key, day, region, names = '', given] =
    /^AWS4-HMAC-SHA256 Credential=([^/]+)\/(\d{8})\/([^/]+)\/s3\/aws4_request, SignedHeaders=([^,]+), Signature=(\w+)$/.exec(
      headers.authorization ?? '',
    ) ?? []
  if (key === undefined || day === undefined || region === undefined) return 'AccessDenied'
  const digest = String(headers['x-amz-content-sha256'])
  if (digest !== sha256(body)) return 'XAmzContentSHA256Mismatch'
  const [path = '', query = ''] = url.split('?')
  const sorted = query.split('&').filter(Boolean).sort().join('&')
  const lines = names.split(';').map((name) => `${name}:${String(headers[name]).trim()}\n`)
  const canonical = [method, path, sorted, lines.join(''), names, digest].join('\n')
  const text = ['AWS4-HMAC-SHA256', headers['x-amz-date'], `${day}/${region}/s3/aws4_request`, sha256(canonical)].join(
    '\n',
  )
  const signing = [day, region, 's3', 'aws4_request'].reduce<Buffer>(hmac, Buffer.from(`AWS4${secret}`))
  return hmac(signing, text).toString('hex') === given ? undefined : 'SignatureDoesNotMatch'
}

const sha256 = (data: Buffer | string): string => createHash('sha256').update(data).digest('hex')
const hmac = (key: Buffer, data: string): Buffer => createHmac('sha256', key).update(data).digest()
