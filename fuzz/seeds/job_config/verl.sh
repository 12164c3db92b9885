python3 -m verl.trainer.main_ppo data.max_prompt_length=512 actor_rollout_ref.model.path=Qwen/Qwen2-7B-Instruct \
  actor_rollout_ref.actor.ppo_mini_batch_size=256 +actor_rollout_ref.rollout.n=5 trainer.n_gpus_per_node=8 trainer.nnodes=1
