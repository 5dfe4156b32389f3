import IconEye from 'icon:eye'
import IconEyeOff from 'icon:eye-off'
import IconRefresh from 'icon:refresh'
import { Button, Text } from '@mantine/core'
import { useDisclosure } from '@mantine/hooks'
import { getSigningKeys, rotateSigningKeys } from '../../../../src/contract/queue/messages.js'
import { api } from '../../api/client.js'
import { useApi } from '../../api/hooks.js'
import { useCanWrite, useSettings } from '../../api/session.js'
import { confirm } from '../../components/confirm.js'
import { CodeBlock, Fact } from '../../components/copy.js'
import { Page, Panel } from '../../components/page.js'
import { Loaded } from '../../components/states.js'
import { Term } from '../../components/term.js'

const ask = () =>
  confirm({
    title: 'Rotate the signing keys',
    text: 'The next key becomes the current key, and a new next key is created. Receivers that know both keys keep working; give them the new next key afterwards.',
    action: 'Rotate the keys',
    onConfirm: () => api(rotateSigningKeys, {}),
    refreshes: [getSigningKeys],
  })

/** The keys that sign deliveries. */
export function SigningKeysPage() {
  const canWrite = useCanWrite()
  const { queue_url } = useSettings()
  const [isShown, { toggle }] = useDisclosure()
  const keys = useApi(getSigningKeys, {})
  const rotate = canWrite ? (
    <Button variant="default" leftSection={<IconRefresh size={16} />} onClick={ask}>
      Rotate the keys
    </Button>
  ) : undefined
  return (
    <Page
      title="Signing keys"
      about="Every delivery is signed, so that your endpoint can verify that it comes from this server."
      actions={rotate}
    >
      <Loaded query={keys}>
        {({ current, next }) => (
          <>
            <Panel
              title="Keys"
              actions={
                <Button
                  size="xs"
                  variant="default"
                  onClick={toggle}
                  leftSection={isShown ? <IconEyeOff size={14} /> : <IconEye size={14} />}
                >
                  {isShown ? 'Hide the keys' : 'Show the keys'}
                </Button>
              }
            >
              <Fact name="Current" copy={current} secret={!isShown}>
                {current}
              </Fact>
              <Fact name="Next" copy={next} secret={!isShown}>
                {next}
              </Fact>
            </Panel>
            <Panel title="For your endpoint">
              <Text size="sm" mb="sm">
                The receiver of the SDK reads both keys from the environment. If it rejects a signature,{' '}
                <Term>homeport queue verify</Term> shows which part differs.
              </Text>
              <CodeBlock
                label="Environment of the endpoint"
                code={`QSTASH_URL=${queue_url}\nQSTASH_CURRENT_SIGNING_KEY=${current}\nQSTASH_NEXT_SIGNING_KEY=${next}`}
                secrets={[current, next]}
              />
            </Panel>
          </>
        )}
      </Loaded>
    </Page>
  )
}
