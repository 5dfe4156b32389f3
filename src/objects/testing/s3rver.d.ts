declare module 's3rver' {
  import type { Server } from 'node:http'
  /** A server with the S3 protocol that keeps its objects in a directory. */
  export default class S3rver {
    constructor(options: {
      readonly directory: string
      readonly address?: string
      readonly port: number
      readonly silent: boolean
      readonly configureBuckets?: readonly { readonly name: string }[]
    })
    run(): Promise<{ readonly port: number; readonly address: string }>
    close(): Promise<void>
    readonly httpServer: Server
  }
}
