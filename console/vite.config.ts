import { fileURLToPath } from 'node:url'
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'
import { icons } from './icons.js'
import { leanContract } from './lean-contract.js'

/** The server that `npx vite console` forwards API requests to. */
const SERVER = process.env.HOMEPORT_API_URL ?? 'http://127.0.0.1:8700'

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  plugins: [react(), icons(), leanContract()],
  resolve: {
    alias: [{ find: /^typebox$/, replacement: fileURLToPath(new URL('src/lib/no-schema.ts', import.meta.url)) }],
  },
  build: {
    outDir: fileURLToPath(new URL('../dist/console', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    chunkSizeWarningLimit: 900,
    // The content security policy forbids data URLs for scripts.
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  server: {
    host: '127.0.0.1',
    proxy: Object.fromEntries(['/v2', '/health', '/auditlogs', '/docs', '/openapi.json'].map((path) => [path, SERVER])),
  },
})
