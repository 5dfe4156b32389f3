import IconDownload from 'icon:download'
import { Badge, Button, Group, Stack, Text } from '@mantine/core'
import { bytes } from '../lib/format.js'
import { hexDump, type Payload } from '../lib/payload.js'
import { CopyTextButton, ScrollText } from './copy.js'
import classes from './copy.module.css'

/** Longer texts are shown in part; copying copies the whole text. */
const MAX_SHOWN = 100_000

/** Shows a body or a value: JSON indented, text as it is, bytes as a hex dump. */
export function PayloadView({ payload, label, empty = 'Empty' }: { payload: Payload; label: string; empty?: string }) {
  if (payload.kind === 'empty') {
    return (
      <Text size="sm" c="dimmed">
        {empty}
      </Text>
    )
  }
  const text =
    payload.kind === 'json' ? payload.pretty : payload.kind === 'text' ? payload.text : hexDump(payload.bytes)
  const size = payload.kind === 'binary' ? payload.bytes.length : new Blob([payload.text]).size
  return (
    <Stack gap={0} className={classes.block ?? ''}>
      <ScrollText label={label}>{text.slice(0, MAX_SHOWN)}</ScrollText>
      <Group gap={6} className={classes.tools ?? ''}>
        <Badge variant="default" size="sm">
          {payload.kind === 'binary' ? 'binary' : payload.kind} · {bytes(size)}
          {text.length > MAX_SHOWN ? ', only the beginning is shown' : ''}
        </Badge>
        {payload.kind === 'binary' ? (
          <Download bytes={payload.bytes} />
        ) : (
          <CopyTextButton value={payload.text} of={label} />
        )}
      </Group>
    </Stack>
  )
}

/** The same with a title. */
export function PayloadPart({ title, ...rest }: { title: string } & Parameters<typeof PayloadView>[0]) {
  return (
    <Stack gap="xs">
      <Text fw={600} size="sm">
        {title}
      </Text>
      <PayloadView {...rest} />
    </Stack>
  )
}

function Download({ bytes: content }: { bytes: Uint8Array<ArrayBuffer> }) {
  const save = () => {
    const url = URL.createObjectURL(new Blob([content]))
    const link = Object.assign(document.createElement('a'), { href: url, download: 'payload.bin' })
    link.click()
    URL.revokeObjectURL(url)
  }
  return (
    <Button size="compact-xs" variant="default" leftSection={<IconDownload size={13} />} onClick={save}>
      Download
    </Button>
  )
}
