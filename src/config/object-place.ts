/** Where objects are: a bucket and a prefix of their keys. */
export interface ObjectPlace {
  readonly bucket: string
  /** Empty, or ends with a slash. */
  readonly prefix: string
}

const BUCKET = /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/
const PREFIX = /^(?:[A-Za-z0-9_-][A-Za-z0-9._-]*\/)*$/
const MAX_PREFIX_LENGTH = 400

/** The place that a text such as `s3://bucket/prefix` names; `undefined` when it is not such a text. */
export function parseObjectPlace(text: string): ObjectPlace | undefined {
  const [, bucket, rest] = /^s3:\/\/([^/]+)(?:\/(.*))?$/.exec(text) ?? []
  const prefix = rest === undefined || rest === '' ? '' : `${rest.replace(/\/+$/, '')}/`
  if (bucket === undefined || !BUCKET.test(bucket)) return undefined
  return PREFIX.test(prefix) && prefix.length <= MAX_PREFIX_LENGTH ? { bucket, prefix } : undefined
}

/** The text that `parseObjectPlace` reads. */
export const placeText = ({ bucket, prefix }: ObjectPlace): string => `s3://${bucket}/${prefix}`.replace(/\/$/, '')
